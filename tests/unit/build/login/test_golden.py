"""Login objects, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build.login import ssh
from kubeslurm.build.login.deployment import deployment
from kubeslurm.build.login.service import service
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[3] / "golden" / "login"
HASHES = {
    names.SSH_HOST_KEYS_HASH: "host-keys-hash",
    names.SSHD_CONF_HASH: "sshd-hash",
    names.SSSD_CONF_HASH: "sssd-hash",
    names.SLURM_KEY_HASH: "slurm-key-hash",
}


@pytest.fixture(params=sorted(path.name for path in CASES.iterdir()))
def case(request: pytest.FixtureRequest) -> Path:
    return CASES / str(request.param)


def test_login_objects_are_as_agreed(case: Path) -> None:
    given = Manifests.read(case / "input.yaml")
    owner, controller = given.one(LoginSet), given.one(Controller)
    trees = [
        ssh.host_keys(owner, {"ssh_host_ed25519_key": b"private"}),
        ssh.config(owner),
        service(owner),
        deployment(owner, controller, HASHES, "cluster.local"),
    ]
    compare(case / "login.yaml", readable(trees))
