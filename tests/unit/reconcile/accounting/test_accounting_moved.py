"""A cluster that has not started yet, and whose accounting moves elsewhere."""

from collections.abc import AsyncIterator

import pytest

from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.looptime

WAITING = {"type": "Ready", "status": "False", "reason": "x", "message": ""}
ELSEWHERE = {"external": True, "externalConfig": {"host": "db.example.org", "port": 6819}}


@pytest.fixture
async def world() -> AsyncIterator[ControlPlane]:
    made = ControlPlane()
    await made.start()
    await made.make_keys()
    await made.make("Accounting", "a", "accountings", spec={}, status={"conditions": [WAITING]})
    await made.make_controller(accountingRef={"name": "a"})
    await made.turn()
    await made.end_trial()
    await made.turn()
    yield made
    await made.stop()


async def test_slurmctld_first_starts_with_the_address_that_is_wanted_by_then(world: ControlPlane) -> None:
    await world.make("Accounting", "a", "accountings", spec=ELSEWHERE)
    await world.turn()
    assert world.find("statefulsets", "c-controller") is None
    await world.end_trial()
    await world.turn()
    assert "AccountingStorageHost=db.example.org\n" in world.delivered_conf()
    assert world.find("statefulsets", "c-controller") is not None
