"""The one gate through which a worker pod may be deleted."""

import time
from collections.abc import Callable, Mapping

import msgspec

from kubeslurm.api import views
from kubeslurm.api.kinds import POD
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.removal import Objection, RemovalFacts, needs_slurm, objection, rests_on_absence
from kubeslurm.decide.nodeset.slurm.registration import Unclaimed
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
    unclaimed: Unclaimed = Unclaimed()
    state_lost: bool = False  # slurmctld seems to have lost its state
    forced: bool = False


class Removals(msgspec.Struct):
    """What became of a request: pods deleted, why others stay, and what failed."""

    removed: list[str] = msgspec.field(default_factory=list)
    objections: dict[str, Objection] = msgspec.field(default_factory=dict)
    errors: tuple[Error, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """The jobs as Slurm listed them, and the nodes that were drained before it did."""

    jobs: JobStore | None  # None: Slurm could not be asked
    unplaced: frozenset[int] = frozenset()  # jobs of which it is not known where they are
    drained: frozenset[str] = frozenset()


class Removal:
    """Reads about each worker again, and deletes its pod only if the fresh facts raise no objection."""

    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._absent: Cooldown[str] = Cooldown(clock)  # by NodeSet; what has expired is dropped

    async def remove(self, request: Request) -> Removals:
        """Deletes those workers for which the gate opens."""
        found = Removals()
        listed = await _list_jobs(request)

        async def attempt(worker: Worker) -> None:
            pod = await self._kube.get(POD, Key(*worker.pod.key))
            if pod is None or pod.deleting or pod.metadata.uid != worker.pod.metadata.uid:
                return
            if (why := await self._objection(pod, request, listed)) is not None:
                found.objections[worker.name] = why
                return
            try:
                await self._kube.delete(POD, Key(*pod.key), uid=pod.metadata.uid)
            except Conflict:
                return  # another pod under the same name: not the one that was judged
            found.removed.append(worker.name)

        found.errors = await fan_out.for_each(request.workers, attempt)
        return found

    async def _objection(self, pod: views.Pod, request: Request, listed: Listed) -> Objection | None:
        """Reads the node now; judging awaits nothing, so that two workers never share one permission."""
        worker = Worker(pod=pod)
        answered, node, error = await _read_node(worker, request)
        hidden = await _hidden_job(node, listed) if node is not None and node.drained else ""
        facts = RemovalFacts(
            worker=worker,
            forced=request.forced,
            has_restapi=request.slurm is not None,
            answered=answered,
            node=node,
            error=error,
            drained_before=worker.slurm_name in listed.drained,
            jobs_known=listed.jobs is not None,
            hidden_job=hidden,
            other_name=request.unclaimed.name_of(worker, absent=node is None),
            absences=request.absences.get(worker.slurm_name, 0),
            state_lost=request.state_lost,
            others_first=self._absent.remaining(request.owner) > 0,
        )
        why = objection(facts)
        if why is None and rests_on_absence(facts):
            self._absent.start(request.owner, ABSENT_EVERY)
        return why


async def _list_jobs(request: Request) -> Listed:
    """The jobs as Slurm lists them now.

    A suspended job leaves its node looking idle. Where the node was drained before the list and is drained after it, no
    job began between, and one that was suspended or resumed between is in the list.
    """
    slurm = request.slurm
    if slurm is None or all(worker.finished for worker in request.workers):
        return Listed(None)
    known = (slurm.snapshot.get(worker.slurm_name) for worker in request.workers)
    drained = frozenset(node.name for node in known if node is not None and node.drained)
    try:
        await slurm.jobs.update(within=0.0)
    except SlurmError:
        return Listed(None)
    return Listed(slurm.jobs, slurm.jobs.unplaced(), drained)


async def _hidden_job(node: Node, listed: Listed) -> str:
    """A job that may be on a node that looks drained; empty when there is certainly none."""
    if listed.jobs is None:
        return ""
    for listed_job in listed.jobs.on(node.name):
        # What was read of a job earlier may be out of date.
        if (job := await listed.jobs.still_on(listed_job.job_id, node.name)) is not None:
            return f"job {job.job_id} is on node {node.name} ({'+'.join(job.job_state)})"
    unplaced = min(listed.unplaced, default=None)
    return f"it is not known yet on which nodes job {unplaced} is" if unplaced is not None else ""


async def _read_node(worker: Worker, request: Request) -> tuple[bool, Node | None, str]:
    """Whether Slurm answered about the worker's node, the node as it is now, and why there was no answer."""
    name = worker.slurm_name
    if request.slurm is None or not name or not needs_slurm(worker, forced=request.forced):
        return False, None, ""
    try:
        return True, (await request.slurm.snapshot.refresh([name]))[name], ""
    except SlurmError as error:
        return False, None, str(error)
