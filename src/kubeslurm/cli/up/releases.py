"""The three charts that make up the product, with the values that a trial wants."""

from collections.abc import Mapping

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.host import cgroups
from kubeslurm.local.sources import SOURCES

CHARTS = SOURCES / "charts"
OPERATOR_NAMESPACE = "slinky"
SLURM_NAMESPACE = "slurm"
CRDS = "slurm-operator-crds"
OPERATOR = "slurm-operator"
SLURM = "slurm"
WORKER = "worker"
WORKERS = 2
LOGIN = "main"
LOGINSET = f"{SLURM}-login-{LOGIN}"

Tags = Mapping[str, str]  # of images of our own build, by name; the others are published ones


def crds() -> Release:
    return Release(CRDS, OPERATOR_NAMESPACE, CHARTS / CRDS, {})


def operator(tags: Tags, registry: str = "") -> Release:
    """The operator and its admission server."""
    parts = {"operator": "slurm-operator", "webhook": "slurm-operator-webhook"}
    values: Tree = {part: {"image": image} for part, name in parts.items() if (image := _image(name, tags, registry))}
    if tags:
        values = merged(values, {part: {"affinity": _together()} for part in parts})
    return Release(OPERATOR, OPERATOR_NAMESPACE, CHARTS / OPERATOR, values)


def slurm(tags: Tags, extra: Tree, registry: str = "") -> Release:
    """A small cluster: two workers, one partition; `extra` values of the user go over it."""
    values: Tree = {
        "nodesets": {WORKER: {"replicas": WORKERS}},
        "partitions": {"all": {"enabled": True}},
        "controller": {"metrics": {"enabled": True}},
    }
    for layer in (_images(tags, registry), this_machine() if tags else {}, extra):
        values = merged(values, layer)
    return Release(SLURM, SLURM_NAMESPACE, CHARTS / "slurm", values)


def trial(workers: int, root_keys: str, exposed: bool) -> Tree:
    """Values for what a trial has besides: records of jobs in a database, and a login pod that lets root in by key.

    Where nobody said so, the login pod must not be exposed to more than the cluster: not even by a load balancer.
    """
    service = {"spec": {"type": "NodePort" if exposed else "ClusterIP"}}
    return {
        "nodesets": {WORKER: {"replicas": workers}},
        "accounting": {"enabled": True, "mariadb": {"enabled": True}},
        "loginsets": {LOGIN: {"rootSshAuthorizedKeys": root_keys, "service": service}},
    }


def merged(base: Tree, over: Tree) -> Tree:
    """Maps merge, everything else replaces, as Helm does it."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _images(tags: Tags, registry: str) -> Tree:
    """Where each container's image is, as far as it is not the published one."""
    image = {
        name: {"image": found} if (found := _image(name, tags, registry)) else {}
        for name in ("slurmctld", "slurmrestd", "slurmd", "slurmdbd", "mariadb", "login")
    }
    return {
        "controller": {"slurmctld": image["slurmctld"], "reconfigure": image["slurmctld"]},
        "restapi": {"slurmrestd": image["slurmrestd"]},
        "nodesetDefaults": {"slurmd": image["slurmd"]},
        "accounting": {"slurmdbd": image["slurmdbd"], "mariadb": image["mariadb"]},
        "loginsetDefaults": {"login": image["login"]},
    }


def this_machine() -> Tree:
    """Limits for nodes that are all the same machine, and its control groups."""
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}
    memory = [each for each in cgroups.detect().hierarchies if each.fstype == "cgroup" and "memory" in each.options]
    return {
        "nodesetDefaults": {"slurmd": {"resources": limits}},
        "isolation": {"cgroup": "v1" if memory else "v2"},
    }


def _together() -> Tree:
    """Both on one node of this machine: their images are nearly the same, so that is half of the unpacking."""
    labels = {"app.kubernetes.io/instance": OPERATOR}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    wish = {"weight": 100, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def _image(name: str, tags: Tags, registry: str) -> Tree:
    """Nothing for the published image, which the charts know by themselves."""
    if name in tags:
        return {"repository": f"localhost/{name}", "tag": tags[name]}
    return {"repository": f"{registry}/{name}"} if registry else {}
