"""Measures actions on Slurm's control plane, in seconds: a changed configuration, a deleted pod, a new cluster."""

import re
import time

from benchmarks.actions.slurm_cluster import SlurmCluster, uid, wait_until
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import helm
from kubeslurm.cli.up.helm import Release

CONFIG_CACHE = "/var/spool/slurmd/conf-cache/slurm.conf"
WORKERS = 2


class ControlPlane:
    """Changes the configuration of slurmctld, or deletes its pod, and waits for the effect."""

    def __init__(self, slurm: SlurmCluster) -> None:
        self.slurm = slurm

    def config_change(self, run: int) -> float:
        """From the edit of a setting until slurmctld and all workers run with it."""
        slurm, value = self.slurm, 5000 + run
        wait_until(lambda: slurm.idle(WORKERS))
        extra = slurm.api.get(slurm.controller)["spec"]["extraConf"]
        kept = "\n".join(line for line in extra.splitlines() if not line.startswith("MaxJobCount"))
        start = time.monotonic()
        slurm.api.patch(slurm.controller, {"spec": {"extraConf": f"{kept}\nMaxJobCount={value}"}})
        wait_until(self._config_is_running)
        seconds = time.monotonic() - start
        # That was the operator's status: check with Slurm itself.
        shown = slurm.shell.run("scontrol show config")
        assert re.search(rf"MaxJobCount\s+= {value}\b", shown), "slurmctld does not have the new value"
        for pod in slurm.workers().values():
            name = pod["metadata"]["name"]
            text = slurm.run_in(name, "slurmd", "cat", CONFIG_CACHE)
            assert f"MaxJobCount={value}" in text, f"{name} does not have the new value"
        return seconds

    def controller_pod_delete(self, _run: int) -> float:
        """From the deletion of slurmctld's pod until the new one serves and all nodes are idle."""
        slurm = self.slurm
        wait_until(lambda: slurm.idle(WORKERS))
        pod = f"{slurm.pods}/{slurm.name}-controller-0"
        old = uid(slurm.api.get(pod))
        slurm.shell.close()
        start = time.monotonic()
        slurm.api.delete(pod)
        wait_until(lambda: uid(slurm.api.find(pod)) not in ("", old))
        wait_until(lambda: slurm.idle(WORKERS))
        return time.monotonic() - start

    def _config_is_running(self) -> bool:
        found = self.slurm.api.get(self.slurm.controller)
        status = found["status"]
        current = status["observedGeneration"] == found["metadata"]["generation"]
        return bool(current and status["configHash"] == status["wantedConfigHash"])


def apply_to_idle(slurm: SlurmCluster, release: Release) -> float:
    """From applying a Controller, a RestApi and two workers until the workers are idle; images are on the nodes."""
    manifest = helm.render(release)
    slurm.cluster.kubectl("create", "namespace", slurm.namespace)
    try:
        start = time.monotonic()
        slurm.cluster.kubectl(f"--namespace={slurm.namespace}", "apply", "--filename=-", stdin=manifest)
        wait_until(lambda: _running(slurm.api.find(f"{slurm.pods}/{slurm.name}-controller-0")))
        wait_until(lambda: slurm.idle(WORKERS))
        return time.monotonic() - start
    finally:
        slurm.shell.close()
        slurm.cluster.kubectl("delete", "namespace", slurm.namespace, "--wait=true", "--timeout=120s")


def _running(pod: Tree | None) -> bool:
    return bool(pod and pod["status"].get("phase") == "Running")
