"""Random acts of users, admins, machines and Slurm around a NodeSet, and what must hold whatever they do."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from kubeslurm.api import names
from kubeslurm.api.kinds import NODE, NODESET
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.slurm import errors, hostlist
from tests.support.clock import HandClock
from tests.support.disruption import FOREGROUND, ORPHAN, collect_garbage, evict
from tests.support.nodeset_setting import Setting
from tests.support.world import SET, World

HOSTS = 6
STEPS = 40
TROUBLE = 0.05  # how often something happens between two calls of a pass


class Driver:
    """Does one random thing after the other, and remembers what must hold."""

    def __init__(self, seed: int, setting: Setting) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.setting = setting
        self.clock = HandClock(1000.0)
        self.world = World(hosts=HOSTS, domain=setting.domain, clock=self.clock)
        self.world.machines.takes_name = setting.takes_name
        self.slurm = self.world.slurm
        self.slurm.on_call = self.slurm.on_answer = self._between
        self.replicas, self.weight = 3, 0
        self.declare()
        self.world.nodeset(name="cpu", replicas=1)
        self.excused: set[int] = set()  # jobs whose worker was taken away by other hands
        self.quiet = False

    async def run(self) -> None:
        """Random acts, each followed by a few passes."""
        acts: list[Callable[[], Awaitable[None] | None]] = [
            *(self.submit, self.submit, self.submit, self.finish, self.suspend, self.resume_job),
            *(self.scale, self.scale, self.update, self.update, self.evict, self.rename, self.cordon, self.uncordon),
            *(self.restart_operator, self.slurm_away, self.slurm_back, self.slurm_back, self.rest_api_deleted),
            *(self.lose_pod, self.restart_container, self.lose_node, self.node_back),
            *(self.cut_off, self.cut_off, self.cut_off, self.reconnect),
            *(self.admin_drain, self.admin_resume, self.forget_record, self.register_again),
        ]
        for _ in range(STEPS):
            await self.act(self.random.choice(acts))
        finales = [self.settle, self.delete, self.delete_in_foreground, self.orphan]
        if self.setting.is_found:
            await self.random.choice(finales)()

    async def act(self, what: Callable[[], Awaitable[None] | None]) -> None:
        """One act, and what the operator makes of it."""
        if (pending := what()) is not None:
            await pending
        await self.turn(self.random.randint(1, 3))

    async def turn(self, times: int = 1, *, quiet: bool = False) -> None:
        """Passes of the operator, in whose midst others act unless it is quiet."""
        for _ in range(times):
            self.quiet = quiet
            await self.world.turn()
            self.quiet = True
            self.clock.now += 40.0 if quiet else self.random.choice((1.0, 10.0, 40.0))
            self.check()

    def check(self) -> None:
        """No job was hurt by the operator."""
        assert self.world.violations == []
        killed = {*self.slurm.requeued, *self.slurm.cancelled} - self.excused
        assert killed == set(), f"jobs killed: {killed}"

    # How it ends.

    async def settle(self) -> None:
        """Everybody leaves it alone, jobs end: then all is as declared."""
        await self.rest()
        await self.turn(30, quiet=True)
        pods = self.pods()
        assert len(pods) == (HOSTS if self.setting.mode == "DaemonSet" else self.replicas), self.world.status()
        alive = self.world.machines.alive()
        # The records of machines that have no worker any more may be the user's to delete.
        assert self.setting.mode == "DaemonSet" or self.setting.host_network or alive == self.slurm.records.keys()
        assert alive <= self.slurm.records.keys()
        assert [name for name in alive if not self.slurm.is_idle(name)] == []
        assert self.world.status()["updatedReplicas"] == len(pods)

    async def delete(self, *cascade: str) -> None:
        """The NodeSet is deleted: its workers go when their jobs have ended."""
        self.world.delete_nodeset(*cascade)
        if self.random.random() < 0.5:
            collect_garbage(self.world.kube)
        await self.turn(5)
        collect_garbage(self.world.kube)
        await self.rest()
        await self.turn(30, quiet=True)
        assert self.pods() == []
        assert (NODESET.plural, SET) not in self.world.kube.trees

    async def delete_in_foreground(self) -> None:
        await self.delete(FOREGROUND)

    async def orphan(self) -> None:
        """The NodeSet is deleted without its workers: they stay as they are."""
        kept = {pod["metadata"]["uid"] for pod in self.pods() if not pod["metadata"].get("deletionTimestamp")}
        self.world.delete_nodeset(ORPHAN)
        if self.random.random() < 0.5:
            collect_garbage(self.world.kube)
        await self.turn(5)
        collect_garbage(self.world.kube)
        await self.rest()
        await self.turn(20, quiet=True)
        assert kept <= {pod["metadata"]["uid"] for pod in self.pods()}
        assert (NODESET.plural, SET) not in self.world.kube.trees

    async def rest(self) -> None:
        """All that was broken is mended, and jobs end."""
        self.slurm_back()
        for number in range(HOSTS):
            self.world.machines.reconnect(self.host(number))
            self._node_back(number)
            self.world.cordon(self.host(number), cordoned=False)
        self.register_again()
        for name in [name for name, node in self.slurm.records.items() if node.reason == "admin"]:
            self.slurm.resume(name)
        await self.turn(3, quiet=True)
        for job in [*self.slurm.jobs, *self.slurm.forgotten]:
            self.slurm.finish(job)

    # What users do.

    def declare(self) -> None:
        network = {"hostNetwork": True} if self.setting.host_network else {}
        self.world.nodeset(
            replicas=self.replicas,
            scalingMode=self.setting.mode,
            extraConf=f"Weight={self.weight}",
            workloadDisruptionProtection=self.setting.protection,
            template={"spec": network},
        )

    def scale(self) -> None:
        self.replicas = self.random.randint(0, HOSTS - 1)
        self.declare()

    def update(self) -> None:
        self.weight += 1
        self.declare()

    async def evict(self) -> None:
        """A worker is evicted that the operator has had time to protect."""
        if not self.slurm.reachable or not list(self.world.clusters):
            return
        await self.turn(2, quiet=True)
        pod = self._some_pod()
        if pod is None or pod["spec"].get("nodeName") in self.world.machines.cut_off:
            return
        jobs = self._jobs_of(pod)
        running = [job for job in jobs if job in self.slurm.jobs and "RUNNING" in self.slurm.jobs[job].job_state]
        granted = evict(self.world.kube, pod["metadata"]["name"])
        promised = self.setting.protection and self.setting.is_found and pod["status"]["phase"] == "Running"
        assert not (granted and promised and running), f"{pod['metadata']['name']} was evicted under {running}"
        if granted:
            self.excused |= jobs
            self.world.machines.work()  # at once, so that no job begins there

    def submit(self) -> None:
        if free := self._free():
            self.slurm.submit(*self.random.sample(free, self.random.randint(1, min(2, len(free)))))

    def finish(self) -> None:
        if jobs := [*self.slurm.jobs, *self.slurm.forgotten]:
            self.slurm.finish(self.random.choice(jobs))

    # What admins do.

    def suspend(self) -> None:
        if running := self._jobs_in("RUNNING"):
            self.slurm.suspend(self.random.choice(running))

    def resume_job(self) -> None:
        if suspended := self._jobs_in("SUSPENDED"):
            self.slurm.resume_job(self.random.choice(suspended))

    def admin_drain(self) -> None:
        if free := [name for name, node in self.slurm.records.items() if not node.drain and not node.down]:
            self.slurm.drain(self.random.choice(free), "admin")

    def admin_resume(self) -> None:
        if theirs := [name for name, node in self.slurm.records.items() if node.reason == "admin"]:
            self.slurm.resume(self.random.choice(theirs))

    def cordon(self) -> None:
        self.world.cordon(self._some_host())

    def uncordon(self) -> None:
        self.world.cordon(self._some_host(), cordoned=False)

    def rename(self) -> None:
        """The Slurm node of a machine gets another name, which counts in DaemonSet mode."""
        number = self.random.randrange(HOSTS)
        name = f"renamed-{number}-{self.random.randint(0, 99)}"
        self.world.annotate_node(self.host(number), {names.HOSTNAME_OVERRIDE: name})

    # What fails.

    def restart_operator(self) -> None:
        self.world.start_operator()

    def slurm_away(self) -> None:
        self.slurm.reachable = False

    def slurm_back(self) -> None:
        self.slurm.reachable = True
        if not list(self.world.clusters):
            self.world.connect()

    def rest_api_deleted(self) -> None:
        self.world.disconnect()

    def lose_pod(self) -> None:
        if pod := self._some_pod():
            self.excused |= self._jobs_of(pod)
            self.world.kill_pod(pod["metadata"]["name"])

    def restart_container(self) -> None:
        pod = self._some_pod()
        if pod and pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp"):
            self.excused |= self._jobs_of(pod)
            self.world.restart_container(pod["metadata"]["name"])

    def lose_node(self) -> None:
        """The Node object goes, while the machine works on."""
        self.world.kube.remove(NODE, Key("", self._some_host()))

    def node_back(self) -> None:
        self._node_back(self.random.randrange(HOSTS))

    def cut_off(self) -> None:
        self.world.machines.cut_off.add(self._some_host())

    def reconnect(self) -> None:
        self.world.machines.reconnect(self._some_host())

    async def forget_record(self) -> None:
        """slurmctld loses a node on which the operator has seen a job, and does not get it back for minutes."""
        if not self.setting.is_found or not self.slurm.reachable or not list(self.world.clusters):
            return
        held = {name for job in self.slurm.jobs.values() for name in hostlist.expand(job.nodes)}
        if free := sorted(set(self._free()) - held):
            job = self.slurm.submit(name := self.random.choice(free))
            await self.turn(2, quiet=True)
            if job in self.slurm.jobs:
                self.slurm.forget(name)
                await self.turn(5, quiet=True)

    def register_again(self) -> None:
        self.world.machines.register_again()

    def _between(self, call: str) -> None:
        """Between two calls of a pass, and in the midst of one."""
        if self.quiet or self.random.random() > TROUBLE:
            return
        if self.random.random() < 0.3:
            raise errors.Unreachable(f"{call} is lost")
        self.random.choice((self.suspend, self.resume_job, self.submit, self.finish))()

    def host(self, number: int) -> str:
        return f"host-{number}{self.setting.domain}"

    def pods(self) -> list[Tree]:
        """The pods of the NodeSet that is acted on."""
        return [pod for pod in self.world.kube.pods() if pod["metadata"]["labels"][names.LABEL_INSTANCE] == SET.name]

    def _free(self) -> list[str]:
        """Slurm nodes on which a job could start."""
        alive = self.world.machines.alive() & self.slurm.records.keys()
        return sorted(name for name in alive if self.slurm.is_idle(name))

    def _some_host(self) -> str:
        return self.host(self.random.randrange(HOSTS))

    def _some_pod(self) -> Tree | None:
        found = self.world.kube.pods()
        return self.random.choice(found) if found else None

    def _node_back(self, number: int) -> None:
        if (NODE.plural, Key("", self.host(number))) not in self.world.kube.trees:
            self.world.machines.add(number)

    def _jobs_in(self, state: str) -> list[int]:
        return [number for number, job in self.slurm.jobs.items() if state in job.job_state]

    def _jobs_of(self, pod: Tree) -> set[int]:
        name: Any = self.world.machines.registered.get(pod["metadata"]["uid"])
        jobs = {**self.slurm.jobs, **self.slurm.forgotten}
        return {number for number, job in jobs.items() if name in hostlist.expand(job.nodes)}
