"""Random acts of users, admins and machines on a real cluster, and what must hold whatever happens."""

import time
from collections.abc import Callable

from tests.chaos.acts import REPLICAS, WorkerActs
from tests.chaos.faults import FaultActs
from tests.chaos.nodesets import NodeSetActs
from tests.chaos.stage import Stage
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for

Act = Callable[[], None]
FRESH_KEY = 300.0  # seconds that a kubelet may take until it looks at a Secret again, and all daemons to restart


class Driver:
    """Does one random thing after the other; every job it starts is accounted for at the end.

    `wide` adds what is rarer, or needs more time to come to rest: evictions, suspended jobs, lost answers, lost Node
    objects, other NodeSets, a new key.
    """

    def __init__(self, slurm: Slurm, seed: int, *, wide: bool = False) -> None:
        self.wide = wide
        self.stage = Stage(slurm, seed)
        self.workers = WorkerActs(self.stage)
        self.faults = FaultActs(self.stage)
        self.nodesets = NodeSetActs(self.stage)

    def run(self, seconds: float) -> None:
        """Acts for that long, then lets everything come to rest and checks it."""
        spec = self.stage.slurm.get(NODESET, self.stage.workers.name)["spec"]
        if self.wide:
            # Workers of several NodeSets share the few nodes of this machine.
            self.stage.workers.change({"oversubscribeNode": True})
        try:
            self.go_on(seconds)
            self.rest()
        finally:
            self.stage.workers.change({"oversubscribeNode": spec.get("oversubscribeNode", False)})

    def go_on(self, seconds: float) -> None:
        acts = self.acts()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            (act,) = self.stage.random.choices(list(acts), list(acts.values()))
            self.stage.say(act.__qualname__)
            act()
            self.stage.jobs.check()

    def acts(self) -> dict[Act, int]:
        """Every act, and how often it is chosen beside the others."""
        workers, faults = self.workers, self.faults
        usual: dict[Act, int] = {
            workers.submit: 4,
            workers.scale: 2,
            workers.update: 1,
            workers.cordon: 1,
            workers.uncordon: 2,
            workers.admin_drain: 1,
            workers.admin_resume: 1,
            workers.lose_pod: 1,
            faults.kill_operator: 1,
            faults.slurmrestd_away: 1,
            faults.slurmrestd_back: 2,
        }
        return usual | self.more() if self.wide else usual

    def more(self) -> dict[Act, int]:
        nodesets = self.nodesets
        return {
            self.workers.suspend: 2,
            self.workers.resume: 3,
            self.workers.evict: 3,
            self.workers.switch_protection: 1,
            self.lose_answers: 2,
            self.faults.lose_node_object: 1,
            self.faults.change_key: 1,
            nodesets.create: 3,
            nodesets.submit: 4,
            nodesets.switch_partition: 2,
            nodesets.delete: 1,
            nodesets.orphan: 1,
            nodesets.adopt: 2,
            nodesets.join_pool: 1,
            nodesets.leave_pool: 1,
        }

    def lose_answers(self) -> None:
        self.faults.lose_answers(self.stage.random.choice((self.workers.scale, self.workers.update)))

    def rest(self) -> None:
        """Nobody disturbs any more: then all is as declared, and every job has had its end."""
        jobs = self.stage.jobs
        self.stage.say("rest")
        self.faults.slurmrestd_back()
        self.workers.rest()
        if self.wide:
            self.nodesets.rest()
        more = FRESH_KEY if self.faults.has_new_key else 0.0
        wait_for("all jobs to end", self.all_over, within=400 + more, every=0.5, story=jobs.unfinished)
        if self.wide:
            self.nodesets.leave()
        idle = f"{REPLICAS} idle workers, and no other"
        wait_for(idle, self.workers.has_converged, within=180 + more, every=0.5, story=jobs.unfinished)
        assert not jobs.lost(), self.stage.story(f"jobs {jobs.lost()} did not complete")

    def all_over(self) -> bool:
        self.workers.admin_resume()
        return self.stage.jobs.all_over()
