"""The three charts that make up the product, with the values that a trial on one machine wants."""

from collections.abc import Mapping

from kubeslurm.api.meta import Tree
from kubeslurm.cli.helm import Release
from kubeslurm.local import cgroups
from kubeslurm.local.sources import SOURCES

CHARTS = SOURCES / "charts"
OPERATOR_NAMESPACE = "slinky"
SLURM_NAMESPACE = "slurm"
CRDS = "slurm-operator-crds"
OPERATOR = "slurm-operator"
SLURM = "slurm"
WORKER = "worker"
WORKERS = 2


def crds() -> Release:
    return Release(CRDS, OPERATOR_NAMESPACE, CHARTS / CRDS, {})


def operator(tags: Mapping[str, str]) -> Release:
    values: Tree = {}
    if tags:
        values = {
            "operator": {"image": _image("slurm-operator", tags)},
            "webhook": {"image": _image("slurm-operator-webhook", tags)},
        }
    return Release(OPERATOR, OPERATOR_NAMESPACE, CHARTS / OPERATOR, values)


def slurm(tags: Mapping[str, str], extra: Tree) -> Release:
    """A small cluster: two workers, one partition; `extra` values of the user go over it."""
    values: Tree = {
        "nodesets": {WORKER: {"replicas": WORKERS}},
        "partitions": {"all": {"enabled": True}},
        "controller": {"metrics": {"enabled": True}},
    }
    return Release(SLURM, SLURM_NAMESPACE, CHARTS / "slurm", merged(merged(values, _local(tags)), extra))


def merged(base: Tree, over: Tree) -> Tree:
    """Maps merge, everything else replaces, as Helm does it."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _local(tags: Mapping[str, str]) -> Tree:
    """Images and limits for nodes that are all the same machine."""
    if not tags:
        return {}
    slurmctld = {"image": _image("slurmctld", tags)}
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "controller": {"slurmctld": slurmctld, "reconfigure": slurmctld},
        "restapi": {"slurmrestd": {"image": _image("slurmrestd", tags)}},
        "nodesetDefaults": {"slurmd": {"image": _image("slurmd", tags), "resources": limits}},
        "isolation": {"cgroup": _cgroup_version()},
    }


def _cgroup_version() -> str:
    memory = [each for each in cgroups.detect().hierarchies if each.fstype == "cgroup" and "memory" in each.options]
    return "v1" if memory else "v2"


def _image(name: str, tags: Mapping[str, str]) -> Tree:
    return {"repository": f"localhost/{name}", "tag": tags[name]}
