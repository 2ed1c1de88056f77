"""The control plane's objects and files, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import ConfigMap
from kubeslurm.build import restapi
from kubeslurm.build.common import digest
from kubeslurm.build.controller import config, trial
from kubeslurm.build.controller.service import service, service_monitor
from kubeslurm.build.controller.statefulset import statefulset
from kubeslurm.slurm import conf
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[3] / "golden" / "control-plane"
HASHES = {
    names.SLURM_KEY_HASH: "slurm-key-hash",
    names.JWT_KEY_HASH: "jwt-key-hash",
    names.RESTART_HASH: "restart-hash",
}


@pytest.fixture(params=sorted(path.name for path in CASES.iterdir()))
def case(request: pytest.FixtureRequest) -> Path:
    return CASES / str(request.param)


def test_objects_are_as_agreed(case: Path) -> None:
    given = Manifests.read(case / "input.yaml")
    owner = given.one(Controller)
    rest = given.one(RestApi)
    files = config.files(sources(given))
    trees: list[Tree | None] = [config.configmap(owner, files, digest.of_files(files))]
    if not owner.spec.external:
        trees += [service(owner), statefulset(owner, HASHES), service_monitor(owner)]
        trees += [trial.configmap(owner, files, "0123456789abcdef"), trial.pod(owner, "0123456789abcdef")]
    trees += [restapi.service(rest), restapi.deployment(rest, owner, "settings-hash")]
    compare(case / "objects.yaml", readable(trees))


def test_slurm_conf_is_as_agreed(case: Path) -> None:
    compare(case / "slurm.conf", config.files(sources(Manifests.read(case / "input.yaml")))["slurm.conf"])


def sources(given: Manifests) -> config.Sources:
    nodesets = given.all(NodeSet)
    accounting = given.all(Accounting)
    return config.Sources(
        controller=given.one(Controller),
        nodesets=nodesets,
        accounting=accounting[0] if accounting else None,
        configmaps={each.name: each for each in given.all(ConfigMap)},
        max_node_count=conf.max_node_count(sum(each.spec.replicas or 0 for each in nodesets)),
    )
