"""A new slurm.key that slurmctld was not given yet: login pods and slurmdbd keep theirs as long."""

import base64
from collections.abc import AsyncIterator

import pytest

from kubeslurm.api import names
from kubeslurm.build.common import digest
from tests.support.user_services import UserServices

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world() -> AsyncIterator[UserServices]:
    made = UserServices()
    await made.start()
    await put_key(made, b"former")
    await give_slurmctld(made, b"former")
    await made.make_controller()
    secret = {"sssd.conf": "eA==", "password": "eA=="}
    for name in ("sssd", "database"):
        await made.plain("Secret", name, "secrets", data=secret)
    await made.make_loginset()
    await made.make_accounting()
    yield made
    await made.stop()


async def put_key(world: UserServices, key: bytes) -> None:
    data = {name: base64.b64encode(key).decode() for name in ("slurm.key", "jwt.key")}
    await world.plain("Secret", "keys", "secrets", data=data)


async def give_slurmctld(world: UserServices, key: bytes) -> None:
    hashes = {names.SLURM_KEY_HASH: digest.of_values({"jwt.key": key, "slurm.key": key}), names.RESTART_HASH: "x"}
    metadata = {"name": "c-controller", "namespace": "ns"}
    spec = {"template": {"metadata": {"annotations": hashes}}}
    tree = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    await world.server.put(tree, "statefulsets")
    await world.settle()


async def given(world: UserServices) -> tuple[dict[str, str], dict[str, str]]:
    """The hashes that login pods and slurmdbd have after a pass."""
    await world.pass_login()
    await world.pass_accounting()
    return world.annotations("deployments", "l"), world.annotations("statefulsets", "a-accounting")


async def test_login_pods_and_slurmdbd_follow_slurmctld_and_not_the_secret(world: UserServices) -> None:
    before = await given(world)
    await put_key(world, b"new")
    assert await given(world) == before
    await give_slurmctld(world, b"new")
    login, slurmdbd = await given(world)
    assert login[names.SLURM_KEY_HASH] == slurmdbd[names.SLURM_KEY_HASH] != before[0][names.SLURM_KEY_HASH]
    assert slurmdbd[names.JWT_KEY_HASH] != before[1][names.JWT_KEY_HASH]
