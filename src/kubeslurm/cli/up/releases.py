"""The three Helm releases of an installation, with values for a trial."""

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

Tags = Mapping[str, str]  # tags of locally built images, by image name; published images are used for the others


def crds() -> Release:
    return Release(CRDS, OPERATOR_NAMESPACE, CHARTS / CRDS, {})


def operator(tags: Tags, registry: str = "") -> Release:
    """The operator and its admission webhook."""
    names = {"operator": "slurm-operator", "webhook": "slurm-operator-webhook"}
    values: Tree = {key: {"image": image} for key, name in names.items() if (image := _image(name, tags, registry))}
    if tags:
        values = merge(values, {key: {"affinity": _same_node_affinity()} for key in names})
    return Release(OPERATOR, OPERATOR_NAMESPACE, CHARTS / OPERATOR, values)


def slurm(tags: Tags, extra: Tree, registry: str = "") -> Release:
    """A small cluster with two workers and one partition; the user's `extra` values override its values."""
    values: Tree = {
        "nodesets": {WORKER: {"replicas": WORKERS}},
        "partitions": {"all": {"enabled": True}},
        "controller": {"metrics": {"enabled": True}},
    }
    for layer in (_images(tags, registry), local_values() if tags else {}, extra):
        values = merge(values, layer)
    return Release(SLURM, SLURM_NAMESPACE, CHARTS / "slurm", values)


def trial_values(workers: int, root_keys: str, exposed: bool) -> Tree:
    """Values for a trial: accounting with a database, and a login pod with these authorized keys for root.

    Unless `exposed` is set, the login pod is reachable only inside the cluster, not even by a load balancer.
    """
    service = {"spec": {"type": "NodePort" if exposed else "ClusterIP"}}
    return {
        "nodesets": {WORKER: {"replicas": workers}},
        "accounting": {"enabled": True, "mariadb": {"enabled": True}},
        "loginsets": {LOGIN: {"rootSshAuthorizedKeys": root_keys, "service": service}},
    }


def merge(base: Tree, over: Tree) -> Tree:
    """Merge values like Helm: maps are merged, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _images(tags: Tags, registry: str) -> Tree:
    """The image of each container that does not use the published one."""
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


def local_values() -> Tree:
    """Values for nodes that share one machine: resource limits, and its cgroup version."""
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}
    memory = [each for each in cgroups.detect().hierarchies if each.fstype == "cgroup" and "memory" in each.options]
    return {
        "nodesetDefaults": {"slurmd": {"resources": limits}},
        "isolation": {"cgroup": "v1" if memory else "v2"},
    }


def _same_node_affinity() -> Tree:
    """Prefer one node for the operator and the webhook: their images share layers, which are then unpacked once."""
    labels = {"app.kubernetes.io/instance": OPERATOR}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    preference = {"weight": 100, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def _image(name: str, tags: Tags, registry: str) -> Tree:
    """Values for an image; empty for the published one, which is the default of the charts."""
    if name in tags:
        return {"repository": f"localhost/{name}", "tag": tags[name]}
    return {"repository": f"{registry}/{name}"} if registry else {}
