"""When a cluster is settled: as its objects ask for, and nothing of an earlier test still under way."""

from functools import partial
from typing import Any

from tests.support.kubernetes import Kubernetes, run
from tests.support.nodeset import NAME, Workers
from tests.support.slurm import KINDS, NODESET, Slurm
from tests.support.waiting import wait_for

OBJECTS = (*KINDS, "accountings.slinky.slurm.net", "loginsets.slinky.slurm.net")
PATIENCE = 300.0  # seconds: some of it may have been killed with its machine by the test before
LOST = "node.kubernetes.io/"  # how the taints of nodes begin that are not all there
# Only the webhook finds this wrong: it names a ConfigMap that does not exist.
UNUSABLE = """
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: refused, namespace: default}
spec:
  slurmKeyRef: {name: key, key: slurm.key}
  jwtKeyRef: {name: key, key: jwt.key}
  configFileRefs: [{name: not-there}]
"""


def wait_for_webhook(cluster: Kubernetes) -> None:
    """Until the webhook answers: the API server can reach it only some time after its pod is ready."""
    wait_for("the webhook to refuse", lambda: "create it first" in answer(cluster), story=lambda: answer(cluster))


def answer(cluster: Kubernetes) -> str:
    """What the API server says to an object that only the webhook refuses."""
    done = run(cluster.kubectl_command("create", "--dry-run=server", "--filename=-"), stdin=UNUSABLE)
    return done.stdout + done.stderr


def wait_until_settled(slurm: Slurm, workers: int) -> None:
    """Until the machines, the operator and this Slurm cluster with its idle workers are as a new test may expect."""
    cluster = slurm.cluster
    wait_for("all nodes to be ready", lambda: nodes_are_ready(cluster), within=PATIENCE, story=partial(nodes, cluster))
    wait_for("all objects to be as desired", lambda: is_as_desired(slurm), within=PATIENCE)
    for namespace in (slurm.namespace, "slinky"):
        wait_for(f"the pods of {namespace} to stay", partial(pods_stay, cluster, namespace), within=PATIENCE)
    slurm.wait_until_idle(workers, within=PATIENCE)


def put_back(slurm: Slurm, workers: int) -> None:
    """Ends the jobs, cordons and NodeSets that a test has left behind, failed or not, and restores the worker count."""
    for node in items(slurm.cluster, "nodes"):
        if node["spec"].get("unschedulable"):
            slurm.cluster.kubectl("uncordon", node["metadata"]["name"])
    left = slurm.run("squeue", "--noheader", "--format=%A", check=False).split()
    if left:
        slurm.run("scancel", *left, check=False)
    for each in slurm.items(NODESET):
        name = each["metadata"]["name"]
        if name != NAME:
            Workers(slurm, name).delete()
        elif each["spec"]["replicas"] != workers:
            Workers(slurm, name).scale(workers)


def nodes(cluster: Kubernetes) -> str:
    """Of each node what is wrong with it."""
    found = {node["metadata"]["name"]: node for node in items(cluster, "nodes")}
    missing = [f"{each.name} is missing" for each in cluster.spec.nodes if each.name not in found]
    wrong = [f"{name}: {statuses(node)} {node['spec']}" for name, node in found.items() if not is_whole(node)]
    return "\n".join([*missing, *wrong])


def nodes_are_ready(cluster: Kubernetes) -> bool:
    found = {node["metadata"]["name"]: node for node in items(cluster, "nodes")}
    return all(each.name in found and is_whole(found[each.name]) for each in cluster.spec.nodes)


def is_whole(node: dict[str, Any]) -> bool:
    taints = node["spec"].get("taints", ())
    return statuses(node).get("Ready") == "True" and not any(taint["key"].startswith(LOST) for taint in taints)


def pods_stay(cluster: Kubernetes, namespace: str) -> bool:
    """Whether all that run are ready, and none is still being shut down."""
    return all(
        "deletionTimestamp" not in pod["metadata"]
        and (statuses(pod).get("Ready") == "True" or pod["status"].get("phase") in ("Succeeded", "Failed"))
        for pod in items(cluster, "pods", namespace)
    )


def is_as_desired(slurm: Slurm) -> bool:
    """Whether every object says so of what it wants now: a change that was taken back is carried out, too."""
    return all(
        each.get("status", {}).get("observedGeneration") == each["metadata"]["generation"]
        and (statuses(each).get("Ready"), statuses(each).get("Progressing")) == ("True", "False")
        for each in slurm.items(*OBJECTS)
    )


def statuses(tree: dict[str, Any]) -> dict[str, str]:
    """The status of each condition."""
    return {each["type"]: each["status"] for each in tree.get("status", {}).get("conditions", ())}


def items(cluster: Kubernetes, kind: str, namespace: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (cluster.read(kind, namespace) or {})["items"]
    return found
