"""Workers and what they share, compared with what was agreed on.

Set KUBESLURM_UPDATE_GOLDEN=1 to write the golden files anew, then read the difference.
"""

import os
from pathlib import Path

import pytest
import yaml

from kubeslurm.api.controller import Controller
from kubeslurm.api.meta import Tree
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.build import claims, worker, workers_shared
from kubeslurm.build.identity import Slot, for_ordinal
from kubeslurm.build.worker import Stamps
from tests.support.manifests import Manifests

CASES = Path(__file__).parents[2] / "golden" / "worker"
STAMPS = Stamps(sshd="sshd-hash", sssd="sssd-hash", slurm_key="key-hash", restart="restart-hash")


class Dumper(yaml.SafeDumper):
    """Writes text of several lines as such, and nothing by reference."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(str, _text)


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_objects_are_as_agreed(case: str) -> None:
    given = Manifests.read(CASES / case / "input.yaml")
    controller, nodeset = given.one(Controller), given.one(NodeSet)
    daemon = nodeset.spec.scalingMode == "DaemonSet"
    slot = Slot(node="node-7.example.org", hostname="node-7") if daemon else for_ordinal(nodeset, 7)
    trees: list[Tree | None] = [
        worker.pod(controller, nodeset, slot, "5f6b7", STAMPS, "cluster.local"),
        *claims.objects(nodeset, slot),
        *workers_shared.objects([nodeset], controller.name),
        workers_shared.ssh_config(nodeset),
    ]
    text = yaml.dump_all([tree for tree in trees if tree], Dumper=Dumper, sort_keys=True, width=120)
    path = CASES / case / "objects.yaml"
    if os.environ.get("KUBESLURM_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
