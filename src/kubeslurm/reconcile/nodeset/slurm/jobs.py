"""Ends jobs: those that lost their processes with a restarted slurmd, and those past a drain deadline.

Each job is read again before it is ended: what was read earlier is not good enough for an act that ends jobs.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

import structlog

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.slurm import deadline, restarts
from kubeslurm.decide.nodeset.slurm.deadline import Ending, ExpiredDrain
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.reconcile.nodeset.slurm.nodes import SlurmNodes
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import Refused, SlurmError
from kubeslurm.slurm.rest.models import Job

log = structlog.get_logger(__name__)


class SlurmJobs:
    """Ends jobs; what fails for one worker or job does not hold up the others."""

    def __init__(self, kube: Kube, nodes: SlurmNodes, age: Callable[[Worker], float | None]) -> None:
        self._kube = kube
        self._nodes = nodes
        self._age = age  # for how many seconds the slurmd of a worker has run, if it was seen to start

    async def end_lost(
        self, slurm: SlurmCluster, restarted: Collection[Worker]
    ) -> tuple[list[Worker], tuple[Error, ...]]:
        """Ends jobs that lost their processes with a restarted slurmd; returns workers that lost none, and errors."""
        if not restarted:
            return [], ()
        jobs = slurm.jobs
        intact: list[Worker] = []
        not_ended: list[Error] = []

        async def respond(worker: Worker) -> None:
            noticed = await self._noticed_at(worker, now)
            name, node = worker.slurm_name, worker.node
            there = [await jobs.still_on(job.job_id, name) for job in jobs.on(name)]
            found = restarts.response(worker, [job for job in there if job is not None], noticed)
            if found.renew_comment:
                intact.append(worker)
            if found.fence_reason and node is not None:
                await self._nodes.fence(slurm, node, found.fence_reason)
            not_ended.extend(await fan_out.for_each(found.end, lambda job: self._end_lost(slurm, job)))

        try:
            now = await slurm.client.now()
            await jobs.update(within=0.0)
        except SlurmError as error:
            return [], (error,)
        errors = await fan_out.for_each(restarted, respond) if jobs.complete else ()
        return intact, (*errors, *not_ended)

    async def expired(
        self, slurm: SlurmCluster, drains: Collection[ExpiredDrain]
    ) -> tuple[list[str], tuple[Error, ...]]:
        """Nodes whose drain deadline has passed by slurmctld's clock too, and errors."""
        if not drains:
            return [], ()
        found: list[str] = []

        async def check(drain: ExpiredDrain) -> None:
            node = (await slurm.snapshot.refresh([drain.node]))[drain.node]
            if deadline.is_expired(drain, node, now):
                found.append(drain.node)

        try:
            now = await slurm.client.now()
        except SlurmError as error:
            return [], (error,)
        errors = await fan_out.for_each(drains, check)
        return sorted(found), errors

    async def end_all(self, slurm: SlurmCluster, nodes: Iterable[str], drain: Drain | None) -> tuple[Error, ...]:
        """Requeues or cancels what still runs on nodes whose drain deadline has passed, as their owner asked."""
        jobs = slurm.jobs

        async def end(place: tuple[int, str]) -> None:
            job = await jobs.still_on(*place)
            if job is None:
                return
            how = deadline.ending(job, drain)
            if how is None:
                text = f"job {job.job_id} on node {place[1]} cannot be requeued"
                raise Refused(0, f"{text}: cancel it, or set drain.policy to Cancel")
            await _end(slurm, job, how)

        try:
            await jobs.update(within=0.0)
        except SlurmError as error:
            return (error,)
        places = {job.job_id: name for name in nodes for job in jobs.on(name)}
        return await fan_out.for_each(sorted(places.items()), end)

    async def _noticed_at(self, worker: Worker, now: int) -> datetime | None:
        """When this slurmd was first noticed, by slurmctld's clock; it is written to the pod before it is used.

        Another process would notice it later, and take jobs that began in between for older than it.
        """
        noticed = restarts.noticed_at(worker, now, self._age(worker))
        if noticed is None or noticed == worker.noticed_at:
            return noticed
        meta = worker.pod.metadata
        annotation = {names.SLURMD_NOTICED: f"{int(noticed.timestamp())} {worker.container}"}
        tree = {"metadata": {"uid": meta.uid, "annotations": annotation}}
        await self._kube.patch(POD, Key(meta.namespace, meta.name), tree, type="strategic", subresource="status")
        return noticed

    async def _end_lost(self, slurm: SlurmCluster, job: Job) -> None:
        log.warning("ending a job that has lost its processes", job=job.job_id, nodes=job.nodes)
        await _end(slurm, job, deadline.ending_of_lost(job))


async def _end(slurm: SlurmCluster, job: Job, how: Ending) -> None:
    await (slurm.client.requeue_job if how is Ending.REQUEUE else slurm.client.cancel_job)(job.job_id)
