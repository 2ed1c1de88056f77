"""How to reach a Kubernetes cluster with kubectl and helm."""

import json
import shutil
import subprocess

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError

DEADLINE = 300.0  # seconds for one kubectl: longer than any wait that it is given


class Access(msgspec.Struct, frozen=True):
    """The kubectl command of a cluster, and the options that select the cluster for helm."""

    kubectl: tuple[str, ...]
    helm_options: tuple[str, ...]

    def run(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl and return its output; raises with its error message if it fails, or does not end."""
        argv = [*self.kubectl, *args]
        try:
            done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            raise LocalError(
                f"kubectl {' '.join(args[:3])} was stopped after {DEADLINE / 60:.0f} minutes.",
                "Check that the cluster answers: `kubectl get nodes`.",
            ) from None
        if done.returncode:
            raise LocalError(f"kubectl {' '.join(args[:3])} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def get_json(self, *args: str) -> Tree:
        """Run kubectl with JSON output and decode it."""
        decoded: Tree = json.loads(self.run(*args, "--output=json"))
        return decoded


def local_access(cluster: Cluster) -> Access:
    """Access to a cluster on this machine."""
    return Access(tuple(cluster.kubectl_command()), (f"--kubeconfig={cluster.kubeconfig}",))


def context_access(context: str) -> Access:
    """Access to the cluster of a kubeconfig context."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise LocalError("kubectl is not installed.", "Install it; `--context` needs it.")
    return Access((kubectl, f"--context={context}"), (f"--kube-context={context}",))
