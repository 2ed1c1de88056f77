"""The one gate through which a worker pod may be deleted."""

import time
from collections.abc import Callable

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.control import fan_out
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.decide.nodeset.health import ABSENCES
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import Conflict
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.rest.models import Node

FORCE_HINT = f"annotate the pod with {names.FORCE_DELETE}=true to remove it all the same"
# Removing workers that Slurm does not know rests on what is missing, not on what was said: slowly, one after the other.
ABSENT_EVERY = 20.0


class Request(msgspec.Struct, frozen=True):
    """Workers of one NodeSet that should go, and what may be known about them."""

    owner: str
    workers: tuple[Worker, ...]
    slurm: SlurmCluster | None
    absences: dict[str, int]  # Slurm node -> full lists in a row without it
    amnesia: bool = False  # slurmctld seems to have lost its memory
    forced: bool = False


class Outcome(msgspec.Struct):
    """What became of a request: pods deleted, and why the others stay."""

    removed: list[str] = msgspec.field(default_factory=list)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    errors: tuple[str, ...] = ()


class Removal:
    """Deletes a worker pod only on proof that no job is there.

    The proof is a fresh "drained" for that very node, read singly here, and no suspended job that a node's state does
    not show; or that no job can be there: slurmd never started, the pod has ended, or Slurm has not known the node for
    several full lists. In doubt the pod stays.
    """

    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._absent: Cooldown[str] = Cooldown(clock)  # by NodeSet

    async def remove(self, request: Request) -> Outcome:
        """Deletes those workers for which the gate opens."""
        outcome = Outcome()
        jobs = await self._jobs(request)

        async def attempt(worker: Worker) -> None:
            pod = await self._kube.get(POD, Key(*worker.pod.key))
            if pod is None or pod.deleting or pod.metadata.uid != worker.pod.metadata.uid:
                return
            objection = await self._objection(Worker(pod=pod), request, jobs)
            if objection:
                outcome.refused[worker.name] = objection
                return
            try:
                await self._kube.delete(POD, Key(*pod.key), uid=pod.metadata.uid)
            except Conflict:
                return  # another pod under the same name: not the one that was judged
            outcome.removed.append(worker.name)

        outcome.errors = await fan_out.each(request.workers, attempt)
        return outcome

    async def _jobs(self, request: Request) -> JobStore | None:
        """The jobs as Slurm lists them now; None when it cannot be asked."""
        if request.slurm is None or all(worker.finished for worker in request.workers):
            return None
        try:
            await request.slurm.jobs.update(within=0.0)
        except SlurmError:
            return None
        return request.slurm.jobs

    async def _objection(self, worker: Worker, request: Request, jobs: JobStore | None) -> str:
        """Why the pod must stay; empty when it may go."""
        if request.forced or worker.forced or worker.finished:
            return ""
        if worker.never_started:
            return await self._late_news(worker, request)
        if request.slurm is None:
            return "Slurm cannot be asked: the cluster has no RestApi that answers"
        if not worker.slurm_name:
            return f"the Slurm node of pod {worker.name} is not known yet"
        try:
            node = (await request.slurm.snapshot.refresh([worker.slurm_name]))[worker.slurm_name]
        except SlurmError as error:
            return f"Slurm cannot be asked about node {worker.slurm_name}: {error}"
        if node is None:
            return self._absence(worker, request)
        if jobs is None:
            return "Slurm cannot be asked which jobs it has"
        return _doubt(node, worker) or jobs.suspended_on(node.name)

    async def _late_news(self, worker: Worker, request: Request) -> str:
        """A kubelet cut off from the API server may have started slurmd without our knowing: Slurm would know."""
        if request.slurm is None or not worker.pod.spec.nodeName or not worker.slurm_name:
            return ""
        try:
            node = (await request.slurm.snapshot.refresh([worker.slurm_name]))[worker.slurm_name]
        except SlurmError:
            return ""
        return _doubt(node, worker) if node is not None and node.busy and not node.not_responding else ""

    def _absence(self, worker: Worker, request: Request) -> str:
        name = worker.slurm_name
        if request.absences.get(name, 0) < ABSENCES:
            return f"Slurm does not know node {name}; waiting until several lists agree"
        if worker.protected:
            return f"Slurm has forgotten node {name}, which ran jobs when it was last heard of: {FORCE_HINT}"
        if request.amnesia and worker.ever_registered:
            return f"slurmctld has lost most of its nodes, {name} among them: bring its state back, or {FORCE_HINT}"
        if self._absent.remaining(request.owner):
            return "workers that Slurm does not know are removed one after the other"
        self._absent.start(request.owner, ABSENT_EVERY)
        return ""


def _doubt(node: Node, worker: Worker) -> str:
    if node.drained:
        return ""
    state = "+".join(node.state)
    if node.busy:
        return f"node {node.name} of pod {worker.name} still runs jobs ({state})"
    return f"node {node.name} of pod {worker.name} is not drained yet ({state})"
