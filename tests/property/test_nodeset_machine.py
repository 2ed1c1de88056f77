"""A NodeSet under random acts of users, admins, machines and Slurm: no job is ever killed by the operator."""

import random

import pytest

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.slurm import hostlist
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.world import World

STEPS = 50


class Driver:
    """Does one random thing after the other, and remembers what must hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.world = World(hosts=5)
        self.replicas = 3
        self.weight = 0
        self.world.nodeset(replicas=self.replicas)
        self.excused: set[int] = set()  # jobs whose worker was taken away by other hands

    async def run(self) -> None:
        acts = [
            self.scale,
            self.update,
            self.cordon,
            self.uncordon,
            self.submit,
            self.submit,
            self.finish,
            self.restart_operator,
            self.slurm_away,
            self.slurm_back,
            self.rest_api_deleted,
            self.lose_pod,
            self.restart_container,
            self.admin_drain,
            self.admin_resume,
        ]
        for _ in range(STEPS):
            self.random.choice(acts)()
            await self.world.turn(self.random.randint(1, 3))
            self.check()
        await self.settle()

    async def settle(self) -> None:
        """Everybody leaves it alone, jobs end: then all is as declared."""
        self.slurm_back()
        for number in range(5):
            self.world.cordon(f"host-{number}", cordoned=False)
        for name in list(self.world.slurm.records):
            if self.world.slurm.records[name].reason == "admin":
                self.resume(name)
        await self.world.turn(3)
        for job in list(self.world.slurm.jobs):
            self.world.slurm.finish(job)
        await self.world.turn(40)
        self.check()
        assert len(self.world.pod_names()) == self.replicas
        hostnames = sorted(pod["spec"]["hostname"] for pod in self.world.kube.pods())
        assert sorted(self.world.slurm.records) == hostnames
        stuck = [node for node in self.world.slurm.records.values() if not self.world.slurm.is_idle(node.name)]
        assert stuck == []
        assert self.world.status()["updatedReplicas"] == self.replicas

    def check(self) -> None:
        assert self.world.violations == []
        killed = set(self.world.slurm.requeued) - self.excused
        assert killed == set(), f"jobs killed: {killed}"

    def scale(self) -> None:
        self.replicas = self.random.randint(0, 5)
        self._declare()

    def update(self) -> None:
        self.weight += 1
        self._declare()

    def cordon(self) -> None:
        self.world.cordon(f"host-{self.random.randint(0, 4)}")

    def uncordon(self) -> None:
        self.world.cordon(f"host-{self.random.randint(0, 4)}", cordoned=False)

    def submit(self) -> None:
        slurm = self.world.slurm
        pods = [pod for pod in self.world.kube.pods() if not pod["metadata"].get("deletionTimestamp")]
        alive = {pod["spec"]["hostname"] for pod in pods if pod["spec"].get("nodeName")}
        free = [name for name in slurm.records if slurm.is_idle(name) and name in alive]
        if free:
            slurm.submit(*self.random.sample(free, self.random.randint(1, min(2, len(free)))))

    def finish(self) -> None:
        if self.world.slurm.jobs:
            self.world.slurm.finish(self.random.choice(list(self.world.slurm.jobs)))

    def restart_operator(self) -> None:
        self.world.start_operator()

    def slurm_away(self) -> None:
        self.world.slurm.reachable = False

    def slurm_back(self) -> None:
        self.world.slurm.reachable = True
        if not list(self.world.clusters):
            self.world.connect()

    def rest_api_deleted(self) -> None:
        self.world.disconnect()

    def lose_pod(self) -> None:
        if name := self._some_pod():
            self._excuse(self.world.kube.trees[POD.plural, Key("slurm", name)]["spec"]["hostname"])
            self.world.kill_pod(name)

    def restart_container(self) -> None:
        name = self._some_pod()
        if name and self.world.kube.trees[POD.plural, Key("slurm", name)]["spec"].get("nodeName"):
            self._excuse(self.world.kube.trees[POD.plural, Key("slurm", name)]["spec"]["hostname"])
            self.world.restart_container(name)

    def admin_drain(self) -> None:
        free = [name for name, node in self.world.slurm.records.items() if not node.drain and not node.down]
        if free:
            self.world.slurm.drain(self.random.choice(free), "admin")

    def admin_resume(self) -> None:
        theirs = [name for name, node in self.world.slurm.records.items() if node.reason == "admin"]
        if theirs:
            self.resume(self.random.choice(theirs))

    def resume(self, name: str) -> None:
        self.world.slurm._change(name, NodeUpdate.resume())
        self.world.slurm._settle()

    def _declare(self) -> None:
        self.world.nodeset(replicas=self.replicas, extraConf=f"Weight={self.weight}")

    def _some_pod(self) -> str:
        found = self.world.pod_names()
        return self.random.choice(found) if found else ""

    def _excuse(self, node: str) -> None:
        self.excused |= {number for number, job in self.world.slurm.jobs.items() if node in hostlist.expand(job.nodes)}


@pytest.mark.parametrize("seed", range(12))
async def test_random_acts_never_cost_a_job_and_everything_converges(seed: int) -> None:
    await Driver(seed).run()
