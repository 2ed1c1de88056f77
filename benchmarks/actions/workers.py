"""Measures actions on workers, in seconds: scaling, cordons, drains, deleted pods."""

import random
import re
import time
from collections.abc import Callable

from benchmarks.actions.control_plane import WORKERS
from benchmarks.actions.slurm_cluster import SlurmCluster, uid, wait_until

WORKER = "worker-0"
# Slurm and the operator poll periodically: a random pause keeps actions from always meeting the same phase.
MAX_PAUSE = 3.0


class Workers:
    """Changes the number of workers, or the state of one of them, and waits for the effect."""

    def __init__(self, slurm: SlurmCluster) -> None:
        self.slurm = slurm

    def scale_out(self, _run: int) -> float:
        """From one worker to three, until all are idle."""
        self._scale_and_settle(1)
        return self._scale(3)

    def scale_in(self, _run: int) -> float:
        """From three idle workers to one, until the pods are gone."""
        self._scale_and_settle(3)
        return self._scale(1)

    def cordon(self, _run: int) -> float:
        """From the cordon of a Kubernetes node until its Slurm node is drained."""
        node = self._node()
        self._wait_for_state("idle")
        _random_pause()
        try:
            return self._measure(lambda: self._set_cordon(node, True), "drained")
        finally:
            self._set_cordon(node, False)

    def uncordon(self, _run: int) -> float:
        """From the uncordon of a Kubernetes node until its Slurm node is no longer drained.

        Slurm then pings the node for up to a second before it gives it jobs; meanwhile the state has an asterisk.
        """
        node = self._node()
        self._set_cordon(node, True)
        self._wait_for_state("drained")
        _random_pause()
        return self._measure(lambda: self._set_cordon(node, False), "idle")

    def slurm_drain(self, _run: int) -> float:
        """From the drain of a node in Slurm until its pod has the condition."""
        self._wait_for_state("idle")
        wait_until(lambda: not self._pod_is_draining())
        _random_pause()
        start = time.monotonic()
        self.slurm.shell.run(f"scontrol update nodename={WORKER} state=drain reason=benchmark")
        wait_until(self._pod_is_draining)
        seconds = time.monotonic() - start
        self.slurm.shell.run(f"scontrol update nodename={WORKER} state=resume")
        wait_until(lambda: not self._pod_is_draining())
        return seconds

    def pod_delete(self, _run: int) -> float:
        """From the deletion of a worker's pod without grace period until the Slurm node of the new pod is idle."""
        slurm = self.slurm
        self._wait_for_state("idle")
        old, started = slurm.workers()[WORKER], self._slurmd_start_time()
        start = time.monotonic()
        slurm.api.delete(f"{slurm.pods}/{old['metadata']['name']}", grace=0)
        wait_until(lambda: self._slurmd_start_time() not in ("", started))
        wait_until(lambda: slurm.states().get(WORKER) == "idle")
        seconds = time.monotonic() - start
        assert uid(slurm.workers()[WORKER]) != uid(old), "Slurm shows a new slurmd, but the pod is the old one"
        return seconds

    def reset(self) -> None:
        """Back to the number of workers that other measurements use."""
        self._scale(WORKERS)

    def _scale_and_settle(self, count: int) -> None:
        """Scale, wait until all workers are ready in Kubernetes and Slurm, then pause for a random time."""
        self._scale(count)
        wait_until(lambda: self.slurm.api.get(self.slurm.nodeset)["status"].get("readyReplicas") == count)
        _random_pause()

    def _scale(self, count: int) -> float:
        slurm = self.slurm
        start = time.monotonic()
        slurm.api.patch(slurm.nodeset, {"spec": {"replicas": count}})
        wait_until(lambda: len(slurm.workers()) == count)
        pods = time.monotonic() - start
        wait_until(lambda: slurm.idle(count))
        idle = time.monotonic() - start
        return pods if count == 1 else idle

    def _node(self) -> str:
        return str(self.slurm.workers()[WORKER]["spec"]["nodeName"])

    def _set_cordon(self, node: str, cordoned: bool) -> None:
        self.slurm.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": cordoned}})

    def _measure(self, action: Callable[[], None], state: str) -> float:
        """Seconds from the action until the Slurm node has the state."""
        start = time.monotonic()
        action()
        self._wait_for_state(state)
        return time.monotonic() - start

    def _wait_for_state(self, state: str) -> None:
        wait_until(lambda: self.slurm.states().get(WORKER, "").rstrip("*") == state)

    def _pod_is_draining(self) -> bool:
        conditions = self.slurm.workers()[WORKER]["status"].get("conditions", [])
        return any(each["type"] == "SlurmNodeStateDrain" and each["status"] == "True" for each in conditions)

    def _slurmd_start_time(self) -> str:
        found = re.search(r"SlurmdStartTime=(\S+)", self.slurm.shell.run(f"scontrol show node {WORKER}"))
        return found[1] if found else ""


def _random_pause() -> None:
    time.sleep(random.uniform(0, MAX_PAUSE))  # noqa: S311
