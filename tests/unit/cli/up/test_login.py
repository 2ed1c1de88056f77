import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kubeslurm.cli.up import login
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.login import SshAccess

SECRET = {
    "data": {
        "ssh_host_ed25519_key": base64.b64encode(b"secret").decode(),
        "ssh_host_ed25519_key.pub": base64.b64encode(b"ssh-ed25519 AAAA\n").decode(),
    }
}


class ClusterWithNodePort(Access, frozen=True):
    """A cluster whose login Service has a NodePort."""

    def get_json(self, *args: str) -> dict[str, Any]:
        return SECRET if args[1] == "secret" else {"spec": {"ports": [{"port": 22, "nodePort": 30022}]}}


CLUSTER = ClusterWithNodePort(("kubectl", "--context=far 100%"), ())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path


def test_the_key_is_made_once_and_readable_only_by_its_owner(home: Path) -> None:
    ssh = SshAccess(home / "files")
    assert ssh.authorized_keys() == ssh.authorized_keys()
    assert ssh.authorized_keys().startswith("ssh-ed25519 ")
    assert stat.S_IMODE((home / "files/id_ed25519").stat().st_mode) == 0o600


def test_the_users_own_keys_are_authorized_too(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh/id_rsa.pub").write_text("ssh-rsa MINE me@here\n")
    (home / ".ssh/id_rsa").write_text("not for others")
    assert SshAccess(home / "files").authorized_keys().splitlines()[1:] == ["ssh-rsa MINE me@here"]


def test_ssh_uses_the_node_port_of_a_cluster_on_this_machine(home: Path) -> None:
    ssh = SshAccess(home / "some where", "127.64.0.1")
    ssh.authorized_keys()
    assert ssh.write_config(CLUSTER) == "ssh -F ~/'some where/config' login"
    text = (home / "some where/config").read_text()
    assert "  HostName 127.64.0.1\n  Port 30022\n" in text
    assert f'IdentityFile "{home}/some where/id_ed25519"' in text
    assert (home / "some where/known_hosts").read_text() == "slurm-login-main ssh-ed25519 AAAA\n"


def test_ssh_uses_kubectl_exec_for_a_remote_cluster(home: Path) -> None:
    ssh = login.for_context("arn:cloud/far")
    ssh.authorized_keys()
    ssh.write_config(CLUSTER)
    text = (home / ".local/state/kubeslurm/contexts/arn:cloud_far/login/config").read_text()
    assert "ProxyCommand kubectl '--context=far 100%%' exec --stdin --namespace=slurm" in text
    assert text.count("/usr/sbin/sshd -i -e ") == 1
    assert "HostName" not in text


@pytest.mark.parametrize(("status", "works"), [(0, True), (1, False)])
def test_ssh_access_works_once_sinfo_succeeds(
    home: Path, monkeypatch: pytest.MonkeyPatch, status: int, works: bool
) -> None:
    stub = home / "ssh"
    stub.write_text(f'#!/bin/sh\necho "$*" > {home}/calls; exit {status}\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    assert SshAccess(home / "files").works() is works
    assert (home / "calls").read_text().endswith(" login sinfo\n")


def test_delete_removes_all_files(home: Path) -> None:
    ssh = SshAccess(home / "files")
    ssh.authorized_keys()
    ssh.delete()
    assert not (home / "files").exists()
