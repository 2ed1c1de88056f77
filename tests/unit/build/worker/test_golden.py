"""Workers and what they share, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot, for_ordinal
from kubeslurm.build.worker import claims, shared, ssh
from kubeslurm.build.worker import pod as worker
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[3] / "golden" / "worker"
HASHES = {
    names.SSHD_CONF_HASH: "sshd-hash",
    names.SSSD_CONF_HASH: "sssd-hash",
    names.SLURM_KEY_HASH: "key-hash",
    names.RESTART_HASH: "restart-hash",
}


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_objects_are_as_agreed(case: str) -> None:
    given = Manifests.read(CASES / case / "input.yaml")
    controller, nodeset = given.one(Controller), given.one(NodeSet)
    daemon = nodeset.spec.scalingMode == "DaemonSet"
    slot = Slot(node="node-7.example.org", hostname="node-7") if daemon else for_ordinal(nodeset, 7)
    trees: list[Tree | None] = [
        worker.pod(controller, nodeset, slot, "5f6b7", HASHES, "cluster.local"),
        *claims.objects(nodeset, slot),
        *shared.objects([nodeset], controller.name),
        ssh.config(nodeset),
    ]
    compare(CASES / case / "objects.yaml", readable(trees))
