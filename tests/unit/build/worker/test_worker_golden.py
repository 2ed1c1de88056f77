"""Workers and what they share, compared with what was agreed on."""

from pathlib import Path

import pytest

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot, for_ordinal
from kubeslurm.build.worker import claims, shared
from kubeslurm.build.worker import pod as worker
from kubeslurm.build.worker.pod import Stamps
from tests.support.golden import compare, readable
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[3] / "golden" / "worker"
STAMPS = Stamps(sshd="sshd-hash", sssd="sssd-hash", slurm_key="key-hash", restart="restart-hash")


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_objects_are_as_agreed(case: str) -> None:
    given = Manifests.read(CASES / case / "input.yaml")
    controller, nodeset = given.one(Controller), given.one(NodeSet)
    daemon = nodeset.spec.scalingMode == "DaemonSet"
    slot = Slot(node="node-7.example.org", hostname="node-7") if daemon else for_ordinal(nodeset, 7)
    trees: list[Tree | None] = [
        worker.pod(controller, nodeset, slot, "5f6b7", STAMPS, "cluster.local"),
        *claims.objects(nodeset, slot),
        *shared.objects([nodeset], controller.name),
        shared.ssh_config(nodeset),
    ]
    compare(CASES / case / "objects.yaml", readable(trees))
