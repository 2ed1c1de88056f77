"""The objects and files of accounting and login, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build import accounting
from kubeslurm.build.login import objects as login
from kubeslurm.build.login import ssh
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[3] / "golden" / "login"
STAMPS = login.Stamps(host_keys="host-keys-hash", sshd="sshd-hash", sssd="sssd-hash", slurm_key="slurm-key-hash")


@pytest.fixture(params=sorted(path.name for path in CASES.iterdir()))
def case(request: pytest.FixtureRequest) -> Path:
    return CASES / str(request.param)


def test_accounting_objects_are_as_agreed(case: Path) -> None:
    owner = Manifests.read(case / "input.yaml").one(Accounting)
    text = accounting.slurmdbd_conf(owner, "secret")
    files = accounting.Files(conf=text, slurm_key="slurm-key-hash", jwt_key="jwt-key-hash", jwks="jwks")
    compare(case / "slurmdbd.conf", text)
    trees = [accounting.secret(owner, ""), accounting.service(owner), accounting.statefulset(owner, files)]
    compare(case / "accounting.yaml", readable(trees))


def test_login_objects_are_as_agreed(case: Path) -> None:
    given = Manifests.read(case / "input.yaml")
    owner, controller = given.one(LoginSet), given.one(Controller)
    trees = [
        ssh.host_keys(owner, {"ssh_host_ed25519_key": b"private"}),
        ssh.config(owner),
        login.service(owner),
        login.deployment(owner, controller, STAMPS, "cluster.local"),
    ]
    compare(case / "login.yaml", readable(trees))
