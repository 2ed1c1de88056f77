import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kubeslurm.cli.up import login
from kubeslurm.cli.up.helm import Access
from kubeslurm.cli.up.login import Desk

SECRET = {
    "data": {
        "ssh_host_ed25519_key": base64.b64encode(b"secret").decode(),
        "ssh_host_ed25519_key.pub": base64.b64encode(b"ssh-ed25519 AAAA\n").decode(),
    }
}


class Answers(Access, frozen=True):
    """A cluster whose login Service has a NodePort."""

    def tree(self, *args: str) -> dict[str, Any]:
        return SECRET if args[1] == "secret" else {"spec": {"ports": [{"port": 22, "nodePort": 30022}]}}


CLUSTER = Answers(("kubectl", "--context=far 100%"), ())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path


def test_a_key_is_made_once_and_only_its_owner_may_read_it(home: Path) -> None:
    desk = Desk(home / "desk")
    assert desk.root_keys() == desk.root_keys()
    assert desk.root_keys().startswith("ssh-ed25519 ")
    assert stat.S_IMODE((home / "desk/id_ed25519").stat().st_mode) == 0o600


def test_the_users_own_keys_let_in_too(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh/id_rsa.pub").write_text("ssh-rsa MINE me@here\n")
    (home / ".ssh/id_rsa").write_text("not for others")
    assert Desk(home / "desk").root_keys().splitlines()[1:] == ["ssh-rsa MINE me@here"]


def test_ssh_goes_to_the_node_port_of_a_cluster_on_this_machine(home: Path) -> None:
    desk = Desk(home / "some where", "127.64.0.1")
    desk.root_keys()
    assert desk.open(CLUSTER) == "ssh -F ~/'some where/config' login"
    text = (home / "some where/config").read_text()
    assert "  HostName 127.64.0.1\n  Port 30022\n" in text
    assert f'IdentityFile "{home}/some where/id_ed25519"' in text
    assert (home / "some where/known_hosts").read_text() == "slurm-login-main ssh-ed25519 AAAA\n"


def test_ssh_goes_through_the_api_server_of_somebody_elses_cluster(home: Path) -> None:
    desk = login.desk_of_context("arn:cloud/far")
    desk.root_keys()
    desk.open(CLUSTER)
    text = (home / ".local/state/kubeslurm/contexts/arn:cloud_far/login/config").read_text()
    assert "ProxyCommand kubectl '--context=far 100%%' exec --stdin --namespace=slurm" in text
    assert text.count("/usr/sbin/sshd -i -e ") == 1
    assert "HostName" not in text


@pytest.mark.parametrize(("status", "works"), [(0, True), (1, False)])
def test_a_way_in_works_once_slurm_answers_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, status: int, works: bool
) -> None:
    stub = home / "ssh"
    stub.write_text(f'#!/bin/sh\necho "$*" > {home}/asked; exit {status}\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    assert Desk(home / "desk").lets_in() is works
    assert (home / "asked").read_text().endswith(" login sinfo\n")


def test_a_cleared_desk_leaves_nothing(home: Path) -> None:
    desk = Desk(home / "desk")
    desk.root_keys()
    desk.clear()
    assert not (home / "desk").exists()
