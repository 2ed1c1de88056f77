"""Two operators in one cluster: the second waits, and says so."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubeslurm.api.views import Lease
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.objects import kube_store
from kubeslurm.operator.leadership.election import Election
from kubeslurm.operator.leadership.other_operators import OtherOperatorError, OtherOperators
from tests.support.clock import HandClock

OWN = Key("ours", "slurm-operator")


class Idle:
    """A watch that brings nothing by itself."""

    async def run(self) -> None:
        await asyncio.Event().wait()


def lease(namespace: str, version: int, holder: str = "go-operator") -> Lease:
    tree: Any = {
        "metadata": {
            "name": "slurm-operator",
            "namespace": namespace,
            "uid": namespace,
            "resourceVersion": str(version),
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }
    return msgspec.convert(tree, Lease)


def known(*leases: Lease, clock: Callable[[], float]) -> tuple[Store[Key, Lease], OtherOperators]:
    """Operators can run in every namespace but `strangers`."""
    store: Store[Key, Lease] = kube_store()

    async def can_act(namespace: str) -> bool:
        return namespace != "strangers"

    others = OtherOperators(store, Idle(), OWN, can_act, clock)
    for each in leases:
        store.put(each)
    return store, others


async def test_a_lease_that_is_renewed_elsewhere_is_another_operator() -> None:
    _, others = known(lease("slinky", 1), clock=HandClock())
    assert [each.namespace for each in await others.active()] == ["slinky"]


async def test_our_own_lease_and_a_released_one_are_no_others() -> None:
    _, others = known(lease("ours", 1), lease("slinky", 2, holder=""), clock=HandClock())
    assert await others.active() == []


@pytest.mark.looptime
async def test_a_lease_where_no_operator_can_be_neither_keeps_us_from_acting_nor_ends_it() -> None:
    store, others = known(lease("strangers", 1), clock=asyncio.get_running_loop().time)
    store.mark_synced("leases")
    election = Election(None, others)
    standing = asyncio.create_task(election.run())
    async with asyncio.timeout(1):
        await election.won()
    store.put(lease("strangers", 2, holder="somebody else"))
    await asyncio.sleep(5)
    assert not standing.done()
    standing.cancel()
    await asyncio.wait([standing])


async def test_a_lease_that_nobody_renews_dies_after_its_duration() -> None:
    clock = HandClock()
    store, others = known(lease("slinky", 1), clock=clock)
    clock.now += 14
    assert await others.active()
    store.put(lease("slinky", 2))
    clock.now += 14
    assert await others.active()
    clock.now += 1
    assert not await others.active()


@pytest.mark.looptime
async def test_the_election_waits_until_the_other_operator_is_gone() -> None:
    store, others = known(lease("slinky", 1), clock=asyncio.get_running_loop().time)
    store.mark_synced("leases")
    election = Election(None, others)
    standing = asyncio.create_task(election.run())
    winning = asyncio.create_task(election.won())
    await asyncio.sleep(14)
    assert not winning.done()
    await asyncio.sleep(3)
    assert winning.done()
    standing.cancel()
    await asyncio.wait([standing])


@pytest.mark.looptime
async def test_an_operator_that_starts_later_without_knowing_us_ends_our_mandate() -> None:
    store, others = known(clock=asyncio.get_running_loop().time)
    store.mark_synced("leases")
    standing = asyncio.create_task(Election(None, others).run())
    await asyncio.sleep(5)
    assert not standing.done()
    store.put(lease("slinky", 1))
    with pytest.raises(OtherOperatorError, match="disjoint namespaces"):
        await standing


@pytest.mark.looptime
async def test_without_others_and_election_the_operator_may_act_at_once() -> None:
    election = Election(None, None)
    standing = asyncio.create_task(election.run())
    await election.won()
    standing.cancel()
    await asyncio.wait([standing])


@pytest.mark.looptime
async def test_a_role_that_does_not_show_leases_does_not_stop_the_operator() -> None:
    _, others = known(lease("slinky", 1), clock=asyncio.get_running_loop().time)

    async def may_watch() -> bool:
        return False

    election = Election(None, others, may_watch)
    standing = asyncio.create_task(election.run())
    await election.won()
    standing.cancel()
    await asyncio.wait([standing])
