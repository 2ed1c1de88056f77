"""What a user does to a Slurm cluster, and how long it takes until Slurm or Kubernetes shows its effect, in seconds."""

import random
import re
import time
from collections.abc import Callable

from benchmarks.waiting.site import Site, Tree, until
from kubeslurm.cli.up import helm
from kubeslurm.cli.up.helm import Release

FIRST = "worker-0"
CACHE = "/var/spool/slurmd/conf-cache/slurm.conf"
WORKERS = 2
# Slurm's polls and ours have periods: an act that always came right after another would meet them in step.
RANDOM_PAUSE = 3.0


class Control:
    """The control plane: configuration and slurmctld."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def config_change(self, run: int) -> float:
        """A setting edited -> slurmctld and all workers run with it."""
        site, value = self.site, 5000 + run
        until(lambda: site.idle(WORKERS))
        extra = site.api.get(site.controller)["spec"]["extraConf"]
        kept = "\n".join(line for line in extra.splitlines() if not line.startswith("MaxJobCount"))
        began = time.monotonic()
        site.api.patch(site.controller, {"spec": {"extraConf": f"{kept}\nMaxJobCount={value}"}})
        until(self._config_is_live)
        took = time.monotonic() - began
        # The status is the operator's word: Slurm itself must agree.
        assert re.search(rf"MaxJobCount\s+= {value}\b", site.shell.ask("scontrol show config")), "slurmctld does not"
        for pod in site.workers().values():
            text = site.run_in(pod["metadata"]["name"], "slurmd", "cat", CACHE)
            assert f"MaxJobCount={value}" in text, f"{pod['metadata']['name']} does not have it"
        return took

    def controller_pod_delete(self, _run: int) -> float:
        """slurmctld's pod deleted -> the next one serves and all nodes are idle."""
        site = self.site
        until(lambda: site.idle(WORKERS))
        pod = f"{site.pods}/{site.name}-controller-0"
        uid = site.api.get(pod)["metadata"]["uid"]
        site.shell.close()
        began = time.monotonic()
        site.api.delete(pod)
        until(lambda: _uid(site.api.find(pod)) not in ("", uid))
        until(lambda: site.idle(WORKERS))
        return time.monotonic() - began

    def _config_is_live(self) -> bool:
        found = self.site.api.get(self.site.controller)
        status = found["status"]
        seen = status["observedGeneration"] == found["metadata"]["generation"]
        return bool(seen and status["configHash"] == status["wantedConfigHash"])


class Workers:
    """The workers: their number, and the state of one of them on both sides."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def scale_out(self, _run: int) -> float:
        """One worker to three -> all idle."""
        self._settle(1)
        return self._scale(3)

    def scale_in(self, _run: int) -> float:
        """Three idle workers to one -> the pods are gone."""
        self._settle(3)
        return self._scale(1)

    def cordon(self, _run: int) -> float:
        """A Kubernetes node cordoned -> its Slurm node drains."""
        node = self._node()
        self._state("idle")
        time.sleep(random.uniform(0, RANDOM_PAUSE))  # noqa: S311
        try:
            return self._after(lambda: self._cordon(node, True), "drained")
        finally:
            self._cordon(node, False)

    def uncordon(self, _run: int) -> float:
        """A Kubernetes node made schedulable again -> the drain of its Slurm node is lifted.

        Slurm then pings a node before it gives it jobs, for up to a second; meanwhile it shows an asterisk.
        """
        node = self._node()
        self._cordon(node, True)
        self._state("drained")
        time.sleep(random.uniform(0, RANDOM_PAUSE))  # noqa: S311
        return self._after(lambda: self._cordon(node, False), "idle")

    def slurm_drain(self, _run: int) -> float:
        """An administrator drains a node in Slurm at a random moment -> its pod says so."""
        self._state("idle")
        until(lambda: not self._pod_drains())
        time.sleep(random.uniform(0, RANDOM_PAUSE))  # noqa: S311
        began = time.monotonic()
        self.site.shell.ask(f"scontrol update nodename={FIRST} state=drain reason=benchmark")
        until(self._pod_drains)
        took = time.monotonic() - began
        self.site.shell.ask(f"scontrol update nodename={FIRST} state=resume")
        until(lambda: not self._pod_drains())
        return took

    def pod_delete(self, _run: int) -> float:
        """A worker's pod deleted without grace -> the next one is there, and its Slurm node idle."""
        site = self.site
        self._state("idle")
        old, started = site.workers()[FIRST], self._slurmd_start()
        began = time.monotonic()
        site.api.delete(f"{site.pods}/{old['metadata']['name']}", grace=0)
        until(lambda: self._slurmd_start() not in ("", started))
        until(lambda: site.states().get(FIRST) == "idle")
        took = time.monotonic() - began
        assert _uid(site.workers()[FIRST]) != _uid(old), "Slurm says so, but the pod is the old one"
        return took

    def rest(self) -> None:
        """Back to what the others measure with."""
        self._scale(WORKERS)

    def _settle(self, count: int) -> None:
        """So many workers, known to be ready on both sides, at a random moment after that."""
        self._scale(count)
        until(lambda: self.site.api.get(self.site.nodeset)["status"].get("readyReplicas") == count)
        time.sleep(random.uniform(0, RANDOM_PAUSE))  # noqa: S311

    def _scale(self, count: int) -> float:
        site = self.site
        began = time.monotonic()
        site.api.patch(site.nodeset, {"spec": {"replicas": count}})
        until(lambda: len(site.workers()) == count)
        gone = time.monotonic() - began
        until(lambda: site.idle(count))
        there = time.monotonic() - began
        return gone if count == 1 else there

    def _node(self) -> str:
        return str(self.site.workers()[FIRST]["spec"]["nodeName"])

    def _cordon(self, node: str, wanted: bool) -> None:
        self.site.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": wanted}})

    def _after(self, act: Callable[[], None], state: str) -> float:
        began = time.monotonic()
        act()
        self._state(state)
        return time.monotonic() - began

    def _state(self, wanted: str) -> None:
        until(lambda: self.site.states().get(FIRST, "").rstrip("*") == wanted)

    def _pod_drains(self) -> bool:
        conditions = self.site.workers()[FIRST]["status"].get("conditions", [])
        return any(each["type"] == "SlurmNodeStateDrain" and each["status"] == "True" for each in conditions)

    def _slurmd_start(self) -> str:
        found = re.search(r"SlurmdStartTime=(\S+)", self.site.shell.ask(f"scontrol show node {FIRST}"))
        return found[1] if found else ""


def apply_to_idle(site: Site, release: Release) -> float:
    """Controller, RestApi and two workers applied -> workers idle, with the images on the nodes."""
    manifest = helm.rendered(release)
    site.cluster.kubectl("create", "namespace", site.namespace)
    try:
        began = time.monotonic()
        site.cluster.kubectl(f"--namespace={site.namespace}", "apply", "--filename=-", stdin=manifest)
        until(lambda: _running(site.api.find(f"{site.pods}/{site.name}-controller-0")))
        until(lambda: site.idle(WORKERS))
        return time.monotonic() - began
    finally:
        site.shell.close()
        site.cluster.kubectl("delete", "namespace", site.namespace, "--wait=true", "--timeout=120s")


def _uid(found: Tree | None) -> str:
    return str(found["metadata"]["uid"]) if found else ""


def _running(pod: Tree | None) -> bool:
    return bool(pod and pod["status"].get("phase") == "Running")
