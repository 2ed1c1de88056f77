"""What users, administrators and Kubernetes do to workers, one act at a time."""

from tests.chaos.jobs import OLD_ENOUGH
from tests.chaos.stage import Stage
from tests.support.nodeset import evict, is_protected

MOST = 3
REPLICAS = 2
# The acts follow each other faster than jobs end: without a limit hundreds would be waiting when they are over.
MOST_WAITING = 12
CORDON = "nodeset.slinky.slurm.net/pod-cordon"


class WorkerActs:
    """Acts on jobs, on the first NodeSet and on the Kubernetes nodes."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.slurm = stage.slurm
        self.workers = stage.workers
        self.jobs = stage.jobs
        self.random = stage.random

    def submit(self) -> None:
        if len(self.jobs.waiting()) >= MOST_WAITING:
            self.stage.say("  enough jobs are waiting")
            return
        seconds, nodes = self.random.randint(2, 15), self.random.randint(1, 2)
        self.stage.say(f"  job {self.jobs.submit(seconds, nodes)}: {seconds} s on {nodes}")

    def suspend(self) -> None:
        if running := self.jobs.in_state("RUNNING"):
            job = self.random.choice(running)
            self.stage.say(f"  job {job}")
            self.slurm.run("scontrol", "suspend", str(job), check=False)

    def resume(self) -> None:
        for job in self.jobs.in_state("SUSPENDED"):
            self.slurm.run("scontrol", "resume", str(job), check=False)

    def scale(self) -> None:
        replicas = self.random.randint(0, MOST)
        self.stage.say(f"  to {replicas}")
        self.workers.scale(replicas)

    def update(self) -> None:
        self.workers.change_template()

    def cordon(self) -> None:
        self.stage.kubectl("cordon", self.random.choice(self.stage.hosts()))

    def uncordon(self) -> None:
        self.stage.kubectl("uncordon", self.random.choice(self.stage.hosts()))

    def admin_drain(self) -> None:
        if nodes := [node for node, state in self.slurm.nodes().items() if state in ("idle", "mixed", "allocated")]:
            node = self.random.choice(nodes)
            self.stage.say(f"  {node}")
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=chaos", check=False)

    def admin_resume(self) -> None:
        text = self.slurm.run("sinfo", "--noheader", "--Node", "--format=%N|%E", check=False)
        pairs = {tuple(line.split("|", 1)) for line in text.splitlines() if "|" in line}
        for node in sorted(node for node, reason in pairs if reason == "chaos"):
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def lose_pod(self) -> None:
        """Takes a worker away without a word, and answers for its jobs."""
        suspended = set(self.jobs.in_state("SUSPENDED"))
        candidates = {
            node: pod
            for node, pod in sorted(self.stage.pods().items())
            if is_owned(pod) and all(self.jobs.is_old(job) and job not in suspended for job in self.jobs.on(node))
        }
        if not candidates:
            return
        node = self.random.choice(list(candidates))
        self.stage.say(f"  {node}")
        self.jobs.excuse()
        name = candidates[node]["metadata"]["name"]
        self.slurm.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false", check=False)

    def evict(self) -> None:
        """As `kubectl drain` does. A worker that is known to be busy must be refused, whatever else happens."""
        pods = {node: pod for node, pod in sorted(self.stage.pods().items()) if is_owned(pod)}
        if not pods:
            return
        node = self.random.choice(list(pods))
        there = self.jobs.on(node)
        safe = [job for job in there if is_protected(pods[node]) and self.jobs.is_old(job)]
        refusal = evict(self.slurm, pods[node]["metadata"]["name"])
        self.stage.say(f"  {node} with jobs {there}, of them {safe} older than {OLD_ENOUGH} s: {refusal or 'granted'}")
        if not refusal:
            self.jobs.excuse(but=safe)

    def switch_protection(self) -> None:
        """Without it evictions end jobs, because the user wants that; nothing else may."""
        wanted = self.random.random() < 0.5
        self.stage.say(f"  {'on' if wanted else 'off'}")
        self.workers.change({"workloadDisruptionProtection": wanted})

    def rest(self) -> None:
        """Takes back what holds up the end."""
        self.workers.change({"workloadDisruptionProtection": True})
        for host in self.stage.hosts():
            self.stage.kubectl("uncordon", host)
        self.workers.scale(REPLICAS)

    def has_converged(self) -> bool:
        """As many workers as declared, all of one revision, none drained, and no ghost of another."""
        self.admin_resume()
        pods, status = self.stage.pods(), self.workers.status()
        cordoned = [pod for pod in pods.values() if CORDON in pod["metadata"].get("annotations", {})]
        return (
            list(self.slurm.nodes().values()) == ["idle"] * REPLICAS
            and len(pods) == REPLICAS
            and not cordoned
            and status.get("updatedReplicas") == REPLICAS
        )


def is_owned(pod: dict[str, dict[str, object]]) -> bool:
    """Whether somebody brings it back: a worker whose NodeSet was deleted with `--cascade=orphan` has no owner."""
    owners = pod["metadata"].get("ownerReferences")
    return isinstance(owners, list) and any(owner["kind"] == "NodeSet" for owner in owners)
