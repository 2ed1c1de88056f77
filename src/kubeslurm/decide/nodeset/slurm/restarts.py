"""Workers whose slurmd was restarted under running jobs, and which of the jobs have lost their processes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from kubeslurm.decide.nodeset.worker import EPOCH, PodInfo, Worker
from kubeslurm.slurm.rest.models import REASON_PREFIX, Job

# How far the clocks of two machines may be apart before the ages of a job and of a container mean nothing.
CLOCK_SKEW = timedelta(seconds=5)
# A slurmd that was noticed so long after its start says nothing about jobs that began in between.
NOTICED_WITHIN = timedelta(seconds=30)
ALIVE = frozenset({"RUNNING", "SUSPENDED"})


class LostJobs(msgspec.Struct, frozen=True):
    """Which jobs are certainly older than the slurmd of their node."""

    lost: tuple[Job, ...] = ()
    none_lost: bool = False  # all jobs are certainly younger than slurmd
    all_lost: bool = False  # the lost jobs are all that is on the node


class Response(msgspec.Struct, frozen=True):
    """What to do about a restarted slurmd."""

    renew_comment: bool = False  # nothing was lost: the comment may name the slurmd that runs now
    fence_reason: str = ""  # all jobs are lost: take the node down with this reason
    end: tuple[Job, ...] = ()  # some jobs are lost: end only those


def restarted(workers: Iterable[Worker], *, steps_survive: bool = False) -> list[Worker]:
    """Busy workers whose slurmd is not the one that the Slurm node's comment names: jobs may have lost their processes.

    With a process namespace that outlives the container, steps survive its restart.
    """
    found = []
    for worker in workers:
        node = worker.node
        if node is None or not node.busy or node.down or not worker.container or worker.terminating:
            continue
        info = PodInfo.parse(node.comment)
        same_pod = info.podUID == worker.pod.metadata.uid
        if info.podUID and not (same_pod and (steps_survive or info.containerID == worker.container)):
            found.append(worker)
    return found


def noticed_at(worker: Worker, slurm_now: int, age: float | None) -> datetime | None:
    """When this slurmd was first noticed, by slurmctld's clock: as the pod says, or now less the `age` known here."""
    if worker.noticed_at is not None or age is None:
        return worker.noticed_at
    return datetime.fromtimestamp(slurm_now - int(age), UTC)


def response(worker: Worker, jobs: Sequence[Job], noticed: datetime | None) -> Response:
    """What to do, given the jobs on the node as they were just read."""
    found = lost_jobs(jobs, worker.started_at, noticed, worker.pod.metadata.creationTimestamp)
    if found.lost and found.all_lost:
        return Response(fence_reason=f"{REASON_PREFIX}Pod ({worker.key}) was restarted under a running job")
    return Response(renew_comment=found.none_lost, end=found.lost)


def lost_jobs(
    jobs: Iterable[Job], started: datetime | None, noticed: datetime | None, created: datetime | None = None
) -> LostJobs:
    """Compares the age of jobs with that of the slurmd container, which was noticed here at `noticed`.

    The times come from two machines' clocks in whole seconds, so what lies close together is left undecided. A worker
    whose clock is ahead would make its slurmd look younger than it is, and its jobs older; but slurmd cannot have
    started after it was noticed, and that moment is by slurmctld's clock, as the jobs' are. Where it was not noticed in
    time, only jobs from before its pod was created, by the API server's clock, are certainly older. A job that is being
    cleaned up comes to its end by itself.
    """
    alive = [job for job in jobs if "COMPLETING" not in job.job_state and not ALIVE.isdisjoint(job.job_state)]
    starts = {job.job_id: datetime.fromtimestamp(job.start_time.value or 0, UTC) for job in alive}
    if started is None or not alive:
        return LostJobs()
    in_time = noticed is not None and noticed <= started + NOTICED_WITHIN
    latest = min(started, (noticed if in_time else created) or EPOCH)
    lost = tuple(job for job in alive if job.start_time.value and starts[job.job_id] + CLOCK_SKEW < latest)
    young = [job for job in alive if starts[job.job_id] > started + CLOCK_SKEW]
    return LostJobs(lost, none_lost=len(young) == len(alive), all_lost=len(lost) == len(alive))
