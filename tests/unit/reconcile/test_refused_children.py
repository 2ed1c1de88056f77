"""Objects whose children the API server does not take: each says so, and asks again once a minute."""

import base64
from collections.abc import AsyncIterator

import pytest

from kubeslurm.control.refusals import PAUSE
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from tests.support.controlplane import KEY
from tests.support.user_services import UserServices

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world() -> AsyncIterator[UserServices]:
    made = UserServices()
    await made.start()
    await made.make_keys()
    for name, key, text in (("sssd", "sssd.conf", b"[sssd]"), ("database", "password", b"right")):
        await made.plain("Secret", name, "secrets", data={key: base64.b64encode(text).decode()})
    await made.make_controller()
    yield made
    await made.stop()


def is_told(world: UserServices, plural: str, name: str, result: Requeue | None) -> bool:
    condition = world.condition("Degraded", plural, name)
    assert result is not None
    return (condition["status"], condition["reason"], result.after) == ("True", "Rejected", PAUSE)


async def test_a_refused_slurmdbd_is_told(world: UserServices) -> None:
    await world.make_accounting()
    world.server.refused = "statefulsets"
    assert is_told(world, "accountings", "a", await world.pass_accounting())


async def test_refused_login_pods_are_told(world: UserServices) -> None:
    await world.make_loginset()
    world.server.refused = "deployments"
    assert is_told(world, "loginsets", "l", await world.pass_login())


async def test_what_is_refused_no_longer_is_made(world: UserServices) -> None:
    await world.make_accounting()
    world.server.refused = "statefulsets"
    await world.pass_accounting()
    world.server.refused = ""
    await world.pass_accounting()
    assert world.find("statefulsets", "a-accounting") is not None
    assert world.condition("Degraded", "accountings", "a")["status"] == "False"


async def test_a_refused_slurmrestd_is_told(world: UserServices) -> None:
    await world.turn()
    await world.end_trial()
    await world.turn()
    key = KEY._replace(name="r")
    await world.make("RestApi", "r", "restapis", spec={"controllerRef": {"name": "c"}, "slurmrestd": {"image": "r:1"}})
    world.server.refused = "deployments"
    assert is_told(world, "restapis", "r", await world.restapi.reconcile(key))


async def test_a_refused_secret_of_a_token_is_told(world: UserServices) -> None:
    spec = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "ann"}
    await world.make("Token", "t", "tokens", spec=spec)
    world.server.refused = "secrets"
    result = await world.token.reconcile(Key("ns", "t"))
    assert result is not None
    assert result.after == PAUSE
    assert "the API server refuses" in world.condition("Ready", "tokens", "t")["message"]
