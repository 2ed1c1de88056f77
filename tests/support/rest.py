"""When a cluster is at rest: as wanted, and nothing of an earlier test still under way."""

import json
from functools import partial
from typing import Any

from kubeslurm.local.cluster.cluster import Cluster
from tests.support.slurm import KINDS, Slurm
from tests.support.waiting import wait_for

OBJECTS = f"{KINDS},accountings.slinky.slurm.net,loginsets.slinky.slurm.net"
PATIENCE = 300.0  # seconds: some of it may have been killed with its machine by the test before
LOST = "node.kubernetes.io/"  # how the taints of nodes begin that are not all there


def wait_until_at_rest(slurm: Slurm, workers: int) -> None:
    """Until the machines, the operator and this Slurm cluster with its idle workers are as a new test may expect."""
    cluster = slurm.cluster
    wait_for("all nodes to be ready", lambda: nodes_are_ready(cluster), within=PATIENCE)
    wait_for("all objects to be as wanted", lambda: is_as_wanted(slurm), within=PATIENCE)
    for namespace in (slurm.namespace, "slinky"):
        wait_for(f"the pods of {namespace} to stay", partial(pods_stay, cluster, namespace), within=PATIENCE)
    slurm.wait_until_idle(workers, within=PATIENCE)


def nodes_are_ready(cluster: Cluster) -> bool:
    found = {node["metadata"]["name"]: node for node in items(cluster, "nodes")}
    return all(each.name in found and is_whole(found[each.name]) for each in cluster.spec.nodes)


def is_whole(node: dict[str, Any]) -> bool:
    taints = node["spec"].get("taints", ())
    return said(node).get("Ready") == "True" and not any(taint["key"].startswith(LOST) for taint in taints)


def pods_stay(cluster: Cluster, namespace: str) -> bool:
    """Whether all that run are ready, and none is still being shut down."""
    return all(
        "deletionTimestamp" not in pod["metadata"]
        and (said(pod).get("Ready") == "True" or pod["status"].get("phase") in ("Succeeded", "Failed"))
        for pod in items(cluster, "pods", f"--namespace={namespace}")
    )


def is_as_wanted(slurm: Slurm) -> bool:
    """Whether every object says so of what it wants now: a change that was taken back is carried out, too."""
    return all(
        each.get("status", {}).get("observedGeneration") == each["metadata"]["generation"]
        and (said(each).get("Ready"), said(each).get("Progressing")) == ("True", "False")
        for each in items(slurm.cluster, OBJECTS, f"--namespace={slurm.namespace}")
    )


def said(tree: dict[str, Any]) -> dict[str, str]:
    """What each condition is."""
    return {each["type"]: each["status"] for each in tree.get("status", {}).get("conditions", ())}


def items(cluster: Cluster, kinds: str, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", kinds, *options, "--output=json"))["items"]
    return found
