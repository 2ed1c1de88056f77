"""Random acts of users, admins and machines on a real cluster, and what must hold whatever happens."""

import itertools
import random
import time
from collections.abc import Callable

from tests.support.nodeset import RESTAPI, Fate, Workers
from tests.support.slurm import Slurm, wait_for

MOST = 3
OVER = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "BOOT_FAIL", "PREEMPTED", "OUT_OF_MEMORY")


class Driver:
    """Does one random thing after the other; every job it starts is accounted for at the end."""

    def __init__(self, slurm: Slurm, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.slurm = slurm
        self.workers = Workers(slurm)
        self.replicas = 2
        self.weights = itertools.count(1000 + seed % 1000)
        self.jobs: dict[int, int] = {}  # job -> restarts that this driver has to answer for
        self.log: list[str] = []

    def run(self, seconds: float) -> None:
        """Acts for that long, then lets everything come to rest and checks it."""
        acts: list[Callable[[], None]] = [
            self.submit,
            self.submit,
            self.submit,
            self.scale,
            self.update,
            self.cordon,
            self.uncordon,
            self.kill_operator,
            self.slurmrestd_away,
            self.slurmrestd_back,
            self.admin_drain,
            self.admin_resume,
            self.lose_pod,
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            act = self.random.choice(acts)
            self.log.append(act.__name__)
            act()
            self.check()
            time.sleep(self.random.uniform(0, 2))
        self.rest()

    def rest(self) -> None:
        """Nobody disturbs any more: then all is as declared, and every job has had its end."""
        self.slurmrestd_back()
        for host in self.hosts():
            self.slurm.cluster.kubectl("uncordon", host)
        for node in self.drained_by_admin():
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
        self.replicas = 2
        self.workers.scale(2)
        wait_for("all jobs to end", self.all_over, within=300, every=1)
        self.check()
        self.workers.wait_until_idle(2, within=180)
        wait_for("one revision", lambda: self.workers.status().get("updatedReplicas") == 2)

    def check(self) -> None:
        """No job was restarted or lost, unless this driver took its worker away."""
        for job, excused in self.jobs.items():
            fate = self.fate(job)
            if fate is not None:
                assert fate.restarts <= excused, f"job {job} was restarted {fate.restarts} times: {self.log}"
                assert fate.state not in set(OVER) - {"COMPLETED"}, f"job {job} is {fate.state}: {self.log}"

    def all_over(self) -> bool:
        return all((fate := self.fate(job)) is not None and fate.state in OVER for job in self.jobs)

    def fate(self, job: int) -> Fate | None:
        """What became of a job; None while slurmctld cannot tell."""
        text = self.slurm.run("scontrol", "show", "job", str(job), check=False)
        fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
        if "JobState" not in fields:
            return None
        return Fate(fields["JobState"], int(fields["Restarts"]), fields.get("NodeList", ""))

    def submit(self) -> None:
        seconds, nodes = self.random.randint(2, 10), self.random.randint(1, 2)
        self.jobs[self.slurm.submit(f"srun sleep {seconds}", f"--nodes={nodes}")] = 0

    def scale(self) -> None:
        self.replicas = self.random.randint(0, MOST)
        self.workers.scale(self.replicas)

    def update(self) -> None:
        self.workers.change({"extraConf": f"Weight={next(self.weights)}"})

    def cordon(self) -> None:
        self.slurm.cluster.kubectl("cordon", self.random.choice(self.hosts()))

    def uncordon(self) -> None:
        self.slurm.cluster.kubectl("uncordon", self.random.choice(self.hosts()))

    def kill_operator(self) -> None:
        self.workers.kill_operator()

    def slurmrestd_away(self) -> None:
        self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 0}})

    def slurmrestd_back(self) -> None:
        self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})

    def admin_drain(self) -> None:
        if nodes := [node for node, state in self.slurm.nodes().items() if state in ("idle", "mixed", "allocated")]:
            node = self.random.choice(nodes)
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=chaos", check=False)

    def admin_resume(self) -> None:
        for node in self.drained_by_admin():
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def lose_pod(self) -> None:
        """Takes a worker away without a word, and answers for its jobs."""
        pods = self.workers.pods()
        if not pods:
            return
        node = self.random.choice(sorted(pods))
        for job in self.jobs:
            self.jobs[job] += 1  # whichever job was there, or was just being started there
        name = pods[node]["metadata"]["name"]
        self.slurm.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false", check=False)

    def drained_by_admin(self) -> list[str]:
        text = self.slurm.run("sinfo", "--noheader", "--Node", "--format=%N|%E", check=False)
        pairs = [line.split("|", 1) for line in text.splitlines() if "|" in line]
        return [node for node, reason in pairs if reason == "chaos"]

    def hosts(self) -> list[str]:
        return self.slurm.cluster.kubectl("get", "nodes", "--output=name").replace("node/", "").split()
