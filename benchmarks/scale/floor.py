"""The lower bound for a scale-out: a Deployment of as many pods like the workers, without the operator."""

import time

from benchmarks.scale.driver import Driver
from benchmarks.scale.environment import NODESET_KEY
from kubeslurm.api import names
from kubeslurm.api.kinds import DEPLOYMENT, POD
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.releases import SLURM_NAMESPACE
from kubeslurm.engine.key import Key

NAME = "bare"
POD_SPECIFIC = ("nodeName", "hostname", "subdomain", "priority", "serviceAccount", "volumes")


async def measure(driver: Driver, pods: int) -> float:
    """Seconds until all pods are ready."""
    model = next(iter(driver.pods))
    tree = await driver.kube.get_tree(POD, Key(model.namespace, model.name))
    assert tree is not None
    start = time.monotonic()
    await driver.kube.create(deployment(tree, pods))
    await driver.wait_until(f"{pods} bare pods", lambda: driver.ready_replicas(NAME) == pods)
    return time.monotonic() - start


def deployment(worker: Tree, replicas: int) -> Tree:
    """A Deployment of pods that are as expensive to schedule as the worker."""
    labels = {names.LABEL_NAME: names.SLURMD, "bench": NODESET_KEY}
    spec = {field: value for field, value in worker["spec"].items() if field not in POD_SPECIFIC}
    containers = [{**each, "volumeMounts": []} for each in spec["containers"]]
    inits = [{**each, "volumeMounts": []} for each in spec.get("initContainers", [])]
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": NAME, "namespace": SLURM_NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": spec | {"containers": containers, "initContainers": inits},
            },
        },
    }
