"""Random acts of users, admins and machines on a real cluster, and what must hold whatever happens."""

import itertools
import os
import random
import secrets
import time
from collections.abc import Callable

import pytest

from kubeslurm.slurm import hostlist
from tests.support.nodeset import OVER, Fate, Workers
from tests.support.slurm import RESTAPI, Slurm
from tests.support.waiting import wait_for

MOST = 3
REPLICAS = 2
# A job that is younger than this when its slurmd is lost may go unnoticed: clocks of two machines cannot tell.
OLD_ENOUGH = 8
# The acts follow each other faster than jobs end: without a limit hundreds would be waiting when they are over.
MOST_WAITING = 12
CORDON = "nodeset.slinky.slurm.net/pod-cordon"


def chosen_seed(capsys: pytest.CaptureFixture[str]) -> int:
    """The seed that was asked for, or another one; printed at once and with a failure: it repeats the run."""
    seed = int(os.environ.get("KUBESLURM_CHAOS_SEED") or secrets.randbelow(10**6))
    text = f"KUBESLURM_CHAOS_SEED={seed}"
    print(text)  # noqa: T201
    with capsys.disabled():
        print(text)  # noqa: T201
    return seed


class Driver:
    """Does one random thing after the other; every job it starts is accounted for at the end."""

    def __init__(self, slurm: Slurm, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.slurm = slurm
        self.workers = Workers(slurm)
        self.weights = itertools.count(1000 + seed % 1000)
        self.jobs: dict[int, Fate | None] = {}  # what is known of each; Slurm forgets a job some minutes after its end
        self.runs: dict[int, set[str]] = {}  # the names of each job's runs: it gets another one with every restart
        self.excused: dict[int, int] = {}  # restarts that this driver has to answer for
        self.log: list[str] = []

    def run(self, seconds: float) -> None:
        """Acts for that long, then lets everything come to rest and checks it."""
        acts: list[Callable[[], None]] = [
            self.submit,
            self.submit,
            self.submit,
            self.submit,
            self.scale,
            self.scale,
            self.update,
            self.cordon,
            self.uncordon,
            self.uncordon,
            self.kill_operator,
            self.slurmrestd_away,
            self.slurmrestd_back,
            self.slurmrestd_back,
            self.admin_drain,
            self.admin_resume,
            self.lose_pod,
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            act = self.random.choice(acts)
            self.say(act.__name__)
            act()
            self.check()
        self.rest()

    def rest(self) -> None:
        """Nobody disturbs any more: then all is as declared, and every job has had its end."""
        self.say("rest")
        self.slurmrestd_back()
        for host in self.hosts():
            self.slurm.cluster.kubectl("uncordon", host)
        self.workers.scale(REPLICAS)
        wait_for("all jobs to end", self.all_over, within=400, every=0.5, story=self.unfinished)
        wait_for("all workers to be idle again, and no other", self.has_converged, every=0.5, story=self.unfinished)
        lost = [job for job, fate in self.jobs.items() if fate is None or fate.state != "COMPLETED"]
        assert not lost, self.story(f"jobs {lost} did not complete")

    def unfinished(self) -> str:
        """Which jobs have not ended, and what Slurm says of them and of its nodes."""
        left = {job: fate for job, fate in self.jobs.items() if fate is None or fate.state not in OVER}
        asked = (("squeue", "--all"), ("sinfo", "--long", "--Node"))
        return self.story("\n".join([f"{left}", *(self.slurm.run(*command, check=False) for command in asked)]))

    def has_converged(self) -> bool:
        """As many workers as declared, all of one revision, none drained, and no ghost of another."""
        self.admin_resume()
        pods, status = self.workers.pods(), self.workers.status()
        cordoned = [pod for pod in pods.values() if CORDON in pod["metadata"].get("annotations", {})]
        return (
            list(self.slurm.nodes().values()) == ["idle"] * REPLICAS
            and len(pods) == REPLICAS
            and not cordoned
            and status.get("updatedReplicas") == REPLICAS
        )

    def check(self) -> None:
        """No job was restarted, replaced or lost, unless this driver took its worker away."""
        for job, fate in self.workers.fates().items():
            if job not in self.jobs:
                continue
            excused = self.excused[job]
            self.jobs[job] = fate
            self.runs[job].add(fate.sluid)
            # Slurm counts a restart and names the new run at different moments: each is checked by itself.
            runs = len(self.runs[job])
            assert runs <= 1 + excused, self.story(f"job {job} has run {runs} times, excused {excused}")
            assert fate.restarts <= excused, self.story(f"job {job} was restarted {fate.restarts} times, not {excused}")
            assert fate.state not in OVER - {"COMPLETED"}, self.story(f"job {job} is {fate.state}")

    def all_over(self) -> bool:
        self.admin_resume()
        self.check()
        for job, fate in self.jobs.items():
            if fate is not None and fate.restarts and fate.state == "PENDING":
                # Slurm holds a requeued job back for two minutes.
                self.slurm.run("scontrol", "update", f"jobid={job}", "starttime=now", check=False)
        return all(fate is not None and fate.state in OVER for fate in self.jobs.values())

    def submit(self) -> None:
        if sum(1 for fate in self.jobs.values() if fate is None or fate.state == "PENDING") >= MOST_WAITING:
            self.say("  enough jobs are waiting")
            return
        seconds, nodes = self.random.randint(2, 15), self.random.randint(1, 2)
        job = self.slurm.submit(f"srun sleep {seconds}", f"--nodes={nodes}")
        self.jobs[job], self.runs[job], self.excused[job] = None, set(), 0
        self.say(f"  job {job}: {seconds} s on {nodes}")

    def scale(self) -> None:
        replicas = self.random.randint(0, MOST)
        self.say(f"  to {replicas}")
        self.workers.scale(replicas)

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
            self.say(f"  {node}")
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=chaos", check=False)

    def admin_resume(self) -> None:
        text = self.slurm.run("sinfo", "--noheader", "--Node", "--format=%N|%E", check=False)
        pairs = [line.split("|", 1) for line in text.splitlines() if "|" in line]
        for node in [node for node, reason in pairs if reason == "chaos"]:
            self.slurm.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def lose_pod(self) -> None:
        """Takes a worker away without a word, and answers for its jobs."""
        pods = self.workers.pods()
        candidates = [
            node for node in sorted(pods) if all(self.workers.age(job) >= OLD_ENOUGH for job in self.on(node))
        ]
        if not candidates:
            return
        node = self.random.choice(candidates)
        self.say(f"  {node}")
        for job in self.jobs:
            self.excused[job] += 1  # whichever job was there, or was just being started there
        name = pods[node]["metadata"]["name"]
        self.slurm.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--wait=false", check=False)

    def on(self, node: str) -> list[int]:
        """The jobs that run on a node."""
        fates = self.workers.fates()
        return [
            job
            for job in self.jobs
            if job in fates and fates[job].state == "RUNNING" and node in hostlist.expand(fates[job].nodes)
        ]

    def hosts(self) -> list[str]:
        return self.slurm.cluster.kubectl("get", "nodes", "--output=name").replace("node/", "").split()

    def say(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}")

    def story(self, end: str) -> str:
        """What happened until then, for whoever must find out why."""
        return "\n".join([*self.log[-60:], end])
