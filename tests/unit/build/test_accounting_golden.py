"""Accounting's objects and slurmdbd.conf, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.build import accounting
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[2] / "golden" / "login"


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
