"""A worker on its node's own network, pinned to that node, with the node's place in the topology."""

from typing import Any

import pytest

from tests.support.nodeset import Workers, node_of
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def hosted(slurm: Slurm) -> Workers:
    pod: dict[str, Any] = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return Workers.create(slurm, "hosted", "hosted-", pinToNode=True, ordinalPadding=2, pod=pod)


def one(workers: Workers) -> dict[str, Any]:
    selector = f"app.kubernetes.io/instance={workers.name}"
    return next(iter(workers.slurm.items("pods", selector=selector)), {})


def is_idle(workers: Workers, host: str) -> bool:
    return workers.slurm.nodes().get(host) == "idle"


def test_a_worker_on_the_host_network_has_its_nodes_name_and_returns_to_it(hosted: Workers) -> None:
    slurm = hosted.slurm
    host = wait_for("a node for the worker", lambda: one(hosted).get("spec", {}).get("nodeName"))
    wait_for("the worker", lambda: is_idle(hosted, host))
    assert one(hosted)["metadata"]["name"] == "hosted-00"
    assert slurm.run("srun", f"--nodelist={host}", "printenv", "SLURMD_NODENAME").strip() == host
    wait_for("the pin", lambda: hosted.status().get("ordinalToNode") == {"0": host})
    uid = one(hosted)["metadata"]["uid"]
    slurm.kubectl("delete", "pod", "hosted-00", "--grace-period=1", "--wait=true")
    wait_for("another pod", lambda: one(hosted).get("metadata", {}).get("uid", uid) != uid)
    wait_for("its node", lambda: one(hosted)["spec"].get("nodeName"))
    terms = one(hosted)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchFields"][0]["values"] == [host]
    wait_for("the worker", lambda: is_idle(hosted, host))
    assert node_of(one(hosted)) == host
    assert f"instance={hosted.name}" in slurm.get(NODESET, hosted.name)["status"]["selector"]


def test_the_place_of_a_node_is_written_on_its_worker(slurm: Slurm) -> None:
    workers = Workers(slurm)
    name = workers.one()
    host = node_of(workers.pod(name))
    slurm.cluster.kubectl("annotate", "node", host, "topology.slinky.slurm.net/spec=default:s1")
    try:
        wait_for("the annotation on the pod", lambda: place(workers, name) == "default:s1")
    finally:
        slurm.cluster.kubectl("annotate", "node", host, "topology.slinky.slurm.net/spec-")
    wait_for("it to be gone", lambda: place(workers, name) is None)
    workers.wait_until_idle(2)


def place(workers: Workers, name: str) -> str | None:
    annotations: dict[str, str] = workers.pod(name)["metadata"]["annotations"]
    return annotations.get("topology.slinky.slurm.net/spec")
