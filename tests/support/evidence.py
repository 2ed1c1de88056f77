"""What a cluster shows when a test has failed: objects, pods, events, Slurm's nodes and jobs, the operator's log."""

from kubeslurm.local.errors import LocalError
from tests.support.kubernetes import Kubernetes

SHORT = 20.0  # seconds: the cluster may be what is broken
SLURM = (
    "sh",
    "-c",
    "timeout 5 sinfo --Node --long; timeout 5 sinfo --list-reasons; timeout 5 squeue --all --long --states=all",
)
COMMANDS = (
    ("get", "slurm,nodes,pods", "--all-namespaces", "--output=wide"),
    ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
    ("logs", "--namespace=slinky", "deployment/slurm-operator", "--tail=60"),
)
LINES = 80  # of each: the newest


def of(cluster: Kubernetes) -> str:
    """All of it, with the errors in the place of what could not be had."""
    parts = [f"$ kubectl {' '.join(words)}\n{_kubectl(cluster, *words)}" for words in COMMANDS]
    return "\n".join([*parts, *_slurm(cluster)])


def _kubectl(cluster: Kubernetes, *words: str) -> str:
    try:
        text = cluster.kubectl(*words, f"--request-timeout={SHORT:.0f}s", check=False)
    except (AssertionError, LocalError) as error:
        return str(error)
    return "\n".join(text.splitlines()[-LINES:])


def _slurm(cluster: Kubernetes) -> list[str]:
    """Every Slurm cluster there is, by its own words."""
    try:
        found = cluster.read("pods", "", selector="app.kubernetes.io/name=slurmctld") or {}
    except (AssertionError, LocalError, OSError) as error:
        return [str(error)]
    places = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in found.get("items", ())]
    return [f"== Slurm in {namespace}\n{_asked(cluster, namespace, pod)}" for namespace, pod in places]


def _asked(cluster: Kubernetes, namespace: str, pod: str) -> str:
    try:
        return "".join(cluster.exec_in_pod(namespace, pod, "slurmctld", SLURM, deadline=SHORT)[1:])
    except AssertionError as error:
        return str(error)
