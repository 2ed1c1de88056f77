"""On request, a drain made in Slurm shows on the Kubernetes node, and neither side undoes what the other decided."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kubeslurm.cli import helm, releases
from kubeslurm.cli.product import Product
from tests.support.nodeset import Workers, node_of
from tests.support.slurm import Slurm, wait_for

MARK = "kubeslurm.dev/slurm-drain"


@pytest.fixture
def workers(product: Product, slurm: Slurm) -> Iterator[Workers]:
    """An operator that cordons what an admin drained."""
    usual = releases.operator(product.tags)
    values = usual.values | {"slurmDrainOnNode": "Cordon"}
    helm.install(product.access, msgspec.structs.replace(usual, values=values), wait=True)
    yield Workers(slurm)
    for host in slurm.cluster.kubectl("get", "nodes", "--output=name").split():
        slurm.cluster.kubectl("uncordon", host)
    helm.install(product.access, usual, wait=True)


def shown(workers: Workers, host: str) -> tuple[bool, str]:
    """Whether the node is cordoned, and what its condition says."""
    tree: dict[str, Any] = workers.slurm.get("node", host)
    said = (each["message"] for each in tree["status"]["conditions"] if each["type"] == "SlurmDrain")
    return tree["spec"].get("unschedulable", False), next(said, "")


def mark(workers: Workers, host: str) -> str | None:
    annotations: dict[str, str] = workers.slurm.get("node", host)["metadata"]["annotations"]
    return annotations.get(MARK)


def scontrol(workers: Workers, *update: str) -> None:
    workers.slurm.run("scontrol", "update", "nodename=worker-0", *update)


def test_an_admins_drain_cordons_the_node_until_the_admin_resumes(workers: Workers) -> None:
    host = node_of(workers.pod("worker-0"))
    scontrol(workers, "state=drain", "reason=bad fan")
    wait_for("the cordon", lambda: shown(workers, host) == (True, "worker-0: bad fan"))
    assert workers.reasons().get("worker-0", "") == "bad fan"
    scontrol(workers, "state=resume")
    wait_for("the node to be itself again", lambda: shown(workers, host) == (False, ""))
    workers.wait_until_idle(2)
    # A user's uncordon is respected although the drain in Slurm goes on.
    scontrol(workers, "state=drain", "reason=bad fan again")
    wait_for("the cordon", lambda: shown(workers, host)[0])
    workers.slurm.cluster.kubectl("uncordon", host)
    scontrol(workers, "state=drain", "reason=still bad")
    wait_for("the new reason", lambda: shown(workers, host) == (False, "worker-0: still bad"))
    # A user's cordon outlives the admin's drain, and is what Slurm is told then.
    workers.slurm.cluster.kubectl("cordon", host)
    workers.slurm.cluster.kubectl("annotate", "node", host, f"{MARK}-")
    wait_for("the cordon to be left to the user", lambda: mark(workers, host) == "Seen")
    scontrol(workers, "state=resume")
    wait_for(
        "the user's cordon to drain", lambda: f"Node ({host}) was cordoned" in workers.reasons().get("worker-0", "")
    )
    assert shown(workers, host) == (True, "")
    workers.slurm.cluster.kubectl("uncordon", host)
    workers.wait_until_idle(2)
