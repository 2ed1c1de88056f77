"""The one gate through which a worker pod may be deleted."""

import time
from collections.abc import Callable, Mapping

import msgspec

from kubeslurm.api import views
from kubeslurm.api.kinds import POD
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.removal import Objection, RemovalFacts, needs_slurm, objection, rests_on_absence
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import Conflict
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.rest.models import Node

# Seconds between removals of workers that Slurm does not know: an absence is weaker proof than an answer.
ABSENT_EVERY = 20.0


class Request(msgspec.Struct, frozen=True):
    """Workers of one NodeSet that should go, and what is known about all of them."""

    owner: str
    workers: tuple[Worker, ...]
    slurm: SlurmCluster | None
    absences: Mapping[str, int]  # Slurm node -> full lists in a row without it
    state_lost: bool = False  # slurmctld seems to have lost its state
    forced: bool = False


class Removals(msgspec.Struct):
    """What became of a request: pods deleted, why others stay, and what failed."""

    removed: list[str] = msgspec.field(default_factory=list)
    objections: dict[str, Objection] = msgspec.field(default_factory=dict)
    errors: tuple[Error, ...] = ()


class Removal:
    """Reads about each worker again, and deletes its pod only if the fresh facts raise no objection."""

    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._absent: Cooldown[str] = Cooldown(clock)  # by NodeSet; what has expired is dropped

    async def remove(self, request: Request) -> Removals:
        """Deletes those workers for which the gate opens."""
        found = Removals()
        jobs = await self._current_jobs(request)

        async def attempt(worker: Worker) -> None:
            pod = await self._kube.get(POD, Key(*worker.pod.key))
            if pod is None or pod.deleting or pod.metadata.uid != worker.pod.metadata.uid:
                return
            if (why := await self._objection(pod, request, jobs)) is not None:
                found.objections[worker.name] = why
                return
            try:
                await self._kube.delete(POD, Key(*pod.key), uid=pod.metadata.uid)
            except Conflict:
                return  # another pod under the same name: not the one that was judged
            found.removed.append(worker.name)

        found.errors = await fan_out.for_each(request.workers, attempt)
        return found

    async def _current_jobs(self, request: Request) -> JobStore | None:
        """The jobs as Slurm lists them now; None when it cannot be asked."""
        if request.slurm is None or all(worker.finished for worker in request.workers):
            return None
        try:
            await request.slurm.jobs.update(within=0.0)
        except SlurmError:
            return None
        return request.slurm.jobs

    async def _objection(self, pod: views.Pod, request: Request, jobs: JobStore | None) -> Objection | None:
        """Reads the node now; from then on nothing is awaited, so that two workers never share one permission."""
        worker = Worker(pod=pod)
        answered, node, error = await self._node(worker, request)
        facts = RemovalFacts(
            worker=worker,
            forced=request.forced,
            has_restapi=request.slurm is not None,
            answered=answered,
            node=node,
            error=error,
            jobs_known=jobs is not None,
            suspended_job=jobs.suspended_on(node.name) if jobs is not None and node is not None else "",
            absences=request.absences.get(worker.slurm_name, 0),
            state_lost=request.state_lost,
            others_first=self._absent.remaining(request.owner) > 0,
        )
        why = objection(facts)
        if why is None and rests_on_absence(facts):
            self._absent.start(request.owner, ABSENT_EVERY)
        return why

    async def _node(self, worker: Worker, request: Request) -> tuple[bool, Node | None, str]:
        """Whether Slurm answered about the worker's node, the node as it is now, and why there was no answer."""
        name = worker.slurm_name
        if request.slurm is None or not name or not needs_slurm(worker, forced=request.forced):
            return False, None, ""
        try:
            return True, (await request.slurm.snapshot.refresh([name]))[name], ""
        except SlurmError as error:
            return False, None, str(error)
