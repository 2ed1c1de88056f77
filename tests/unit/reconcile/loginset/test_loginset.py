"""A LoginSet: its host keys, its pods, what it says about its directory."""

import base64
from collections.abc import AsyncIterator

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.build.login import deployment, ssh
from tests.support.user_services import UserServices

pytestmark = pytest.mark.looptime

AWAY = "login: directory: the servers of sssd domain example do not answer\n"
BACK = "login: directory: the servers of sssd domain example answer again\n"


@pytest.fixture
async def world() -> AsyncIterator[UserServices]:
    made = UserServices()
    await made.start()
    await made.make_keys()
    await made.make_controller()
    await users(made, "[sssd]")
    await made.make_loginset()
    yield made
    await made.stop()


async def users(world: UserServices, text: str) -> None:
    data = {"sssd.conf": base64.b64encode(text.encode()).decode()}
    await world.plain("Secret", "sssd", "secrets", data=data)


def template(world: UserServices) -> Tree:
    found: Tree = (world.find("deployments", "l") or {})["spec"]["template"]
    return found


async def test_host_keys_are_made_once_and_kept(world: UserServices) -> None:
    await world.pass_login()
    made = world.find("secrets", "l-ssh-host-keys")
    assert made is not None
    assert sorted(made["data"]) == sorted(
        f"ssh_host_{kind}_key{end}" for kind in ("rsa", "ed25519", "ecdsa") for end in ("", ".pub")
    )
    assert made["immutable"] is True
    assert "l-ssh-host-keys" in (await world.sent_events())["HostKeysCreated"]
    await world.start()
    await world.make_loginset(replicas=3)
    await world.pass_login()
    assert world.find("secrets", "l-ssh-host-keys") == made


async def test_two_login_sets_have_different_host_keys(world: UserServices) -> None:
    await world.make_loginset("m")
    await world.pass_login()
    await world.pass_login("m")
    first, second = (world.find("secrets", f"{name}-ssh-host-keys") or {} for name in "lm")
    assert first["data"]["ssh_host_ed25519_key.pub"] != second["data"]["ssh_host_ed25519_key.pub"]


async def test_login_pods_are_made_with_address_and_sshd_configuration(world: UserServices) -> None:
    await world.pass_login()
    for plural, name in (("deployments", "l"), ("services", "l"), ("configmaps", "l-ssh-config")):
        assert world.find(plural, name) is not None
    assert world.status("loginsets", "l")["selector"] == "app.kubernetes.io/instance=l,app.kubernetes.io/name=login"


@pytest.mark.parametrize(
    ("change", "hash_"),
    [
        ({"extraSshdConfig": "PasswordAuthentication no"}, names.SSHD_CONF_HASH),
        ({"rootSshAuthorizedKeys": "ssh-ed25519 AAAA root"}, names.SSHD_CONF_HASH),
    ],
)
async def test_pods_that_could_not_see_a_change_are_replaced(
    world: UserServices, change: dict[str, str], hash_: str
) -> None:
    await world.pass_login()
    before = world.annotations("deployments", "l")[hash_]
    await world.make_loginset(**change)
    await world.pass_login()
    assert world.annotations("deployments", "l")[hash_] != before


async def test_a_new_sssd_conf_replaces_the_pods(world: UserServices) -> None:
    await world.pass_login()
    before = world.annotations("deployments", "l")
    await users(world, "[sssd]\ndomains = other")
    await world.pass_login()
    after = world.annotations("deployments", "l")
    assert {key for key in after if after[key] != before[key]} == {names.SSSD_CONF_HASH}
    assert "sssd.conf changed" in (await world.sent_events())["Restarting"]


async def test_neither_a_later_release_nor_a_label_replaces_pods_with_sessions(
    world: UserServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.pass_login()
    before = template(world)
    monkeypatch.setattr(deployment, "READY_SCRIPT", "true")
    monkeypatch.setattr(ssh, "sshd_config", lambda *_lines, extra: f"of a later release\n{extra}")
    tree = world.find("loginsets", "l") or {}
    await world.server.put(tree | {"metadata": tree["metadata"] | {"labels": {"team": "blue"}}}, "loginsets")
    await world.settle()
    await world.pass_login()
    assert template(world) == before
    assert "Restarting" not in await world.sent_events()


async def test_a_missing_sssd_conf_is_said_and_starts_nothing(world: UserServices) -> None:
    await world.server.remove("sssd", plural="secrets")
    await world.settle()
    await world.pass_login()
    assert world.condition("Ready", "loginsets", "l")["reason"] == "SecretKeyNotFound"
    assert world.find("deployments", "l") is None


async def test_a_missing_controller_is_said(world: UserServices) -> None:
    await world.make_loginset("m", controllerRef={"name": "nobody"})
    await world.pass_login("m")
    assert world.condition("Ready", "loginsets", "m")["reason"] == "ControllerNotFound"


async def test_a_directory_that_is_away_is_said_with_the_place_of_its_address(world: UserServices) -> None:
    await world.pass_login()
    await world.run_pod("l-1", names.LOGIN, "l", ready=True)
    world.talking.said["l-1"] = AWAY
    assert await world.pass_login() is not None, "it looks again by itself"
    wrong = world.condition("Degraded", "loginsets", "l")
    assert wrong["reason"] == "DirectoryNotReachable"
    assert "sssd domain example" in wrong["message"]
    assert "ns/sssd" in wrong["message"]
    world.talking.said["l-1"] = AWAY + BACK
    await world.pass_login()
    assert world.condition("Degraded", "loginsets", "l")["status"] == "False"


async def test_a_quiet_login_set_is_not_written_at_all(world: UserServices) -> None:
    await world.pass_login()
    await world.pass_login()
    before = world.writes
    for _ in range(3):
        await world.pass_login()
    assert world.writes == before
    assert set(await world.sent_events()) == {"HostKeysCreated"}
