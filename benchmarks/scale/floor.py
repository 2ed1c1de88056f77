"""What Kubernetes alone takes for as many pods: a Deployment of pods like the workers, which no operator minds."""

import time

from benchmarks.scale.ground import KEY
from benchmarks.scale.stage import Stage
from kubeslurm.api import names
from kubeslurm.api.kinds import DEPLOYMENT, POD
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.releases import SLURM_NAMESPACE
from kubeslurm.engine.key import Key

NAME = "bare"
OWN = ("nodeName", "hostname", "subdomain", "priority", "serviceAccount", "volumes")


async def measure(stage: Stage, pods: int) -> float:
    """Seconds until they all run."""
    model = next(iter(stage.pods))
    tree = await stage.kube.get_tree(POD, Key(model.namespace, model.name))
    assert tree is not None
    start = time.monotonic()
    await stage.kube.create(deployment(tree, pods))
    await stage.until(f"{pods} bare pods", lambda: stage.ready(NAME) == pods)
    return time.monotonic() - start


def deployment(worker: Tree, replicas: int) -> Tree:
    """Of pods that the scheduler has as much trouble with as with the worker, and that are none."""
    labels = {names.LABEL_NAME: names.SLURMD, "bench": KEY}
    spec = {field: value for field, value in worker["spec"].items() if field not in OWN}
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
