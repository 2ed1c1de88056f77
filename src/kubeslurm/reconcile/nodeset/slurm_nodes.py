"""What a NodeSet's reconcile does to Slurm nodes: updates, fences, deleted records, jobs past their time."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

import structlog

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.control import fan_out
from kubeslurm.decide.nodeset import health, sync
from kubeslurm.decide.nodeset.drain import Overdue, foreign_reason, own
from kubeslurm.decide.nodeset.facts import PodInfo, Worker
from kubeslurm.decide.nodeset.health import fence_reason
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import NotFound, Refused, SlurmError
from kubeslurm.slurm.rest.models import REASON_PREFIX, Job, Node, NodeUpdate

log = structlog.get_logger(__name__)

# So few changed nodes are read back singly, which beats waiting for the next poll; more come with the next list anyway.
READ_BACK = 16
LIFTING = (("RESUME",), ("UNDRAIN",))


class SlurmNodes:
    """Writes to Slurm on behalf of one kind of reconcile; every method isolates the nodes from each other."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def update(self, slurm: SlurmCluster, changes: Mapping[str, NodeUpdate]) -> tuple[str, ...]:
        """Applies the changes, each distinct one in a single call."""
        # On a large cluster several passes are made before a list shows what the first of them wrote.
        unsaid = {name: update for name, update in changes.items() if not slurm.snapshot.is_written(name, update)}
        wanted = await self._without_second_thoughts(slurm, unsaid)

        async def tell(group: tuple[NodeUpdate, list[str]]) -> None:
            update, names = group
            try:
                await slurm.client.update_nodes(names, update)
            except NotFound:
                return  # deleted meanwhile; the next list will say so
            slurm.snapshot.wrote(names, update)

        troubles = await fan_out.each(sync.grouped(wanted), tell)
        moved = [name for name, update in wanted.items() if update.state]  # nobody waits for a comment
        if len(moved) <= READ_BACK:
            await self._read_back(slurm, moved)
        else:
            slurm.snapshot.poll_soon()
        return troubles

    async def _without_second_thoughts(
        self, slurm: SlurmCluster, changes: Mapping[str, NodeUpdate]
    ) -> dict[str, NodeUpdate]:
        """The changes, less those that would resume a node which an admin has drained since the last poll."""
        lifting = [name for name, update in changes.items() if update.state in LIFTING]
        ours = await self._still_ours(slurm, lifting)
        return {name: update for name, update in changes.items() if update.state not in LIFTING or name in ours}

    async def _still_ours(self, slurm: SlurmCluster, names: Collection[str]) -> set[str]:
        """Those nodes whose reason is nobody else's, as Slurm says now; of many, one list tells in less time."""
        snapshot = slurm.snapshot
        ours: set[str] = set()

        async def look(name: str) -> None:
            node = (await snapshot.refresh([name]))[name]
            if node is not None and own(node):
                ours.add(name)

        if len(names) <= READ_BACK:
            await fan_out.each(names, look)
            return ours
        await snapshot.poll()
        found = [] if snapshot.failure else [snapshot.get(name) for name in names]
        return {node.name for node in found if node is not None and own(node)}

    async def delete(self, slurm: SlurmCluster, names: Iterable[str]) -> tuple[str, ...]:
        """Deletes records of nodes that have no pod any more; Slurm itself refuses while a job holds one."""
        wanted = list(names)
        if not wanted:
            return ()
        try:
            await slurm.client.delete_nodes(wanted)
        except Refused as error:
            log.info("Slurm keeps a node record", reason=str(error))
            # Some may be gone all the same, and must not lend their drain to the next worker of that name.
            await self._read_back(slurm, wanted)
        except SlurmError as error:
            return (str(error),)
        else:
            slurm.snapshot.forget(wanted)  # or the next worker of that name would be shown with this one's drain
        return ()

    async def fence_orphans(self, slurm: SlurmCluster, nodes: Iterable[Node]) -> tuple[str, ...]:
        """Takes busy nodes down whose pod is gone for certain, so that Slurm requeues their jobs now."""

        async def fence(node: Node) -> None:
            info = PodInfo.parse(node.comment)
            pod = await self._kube.get(POD, Key(info.namespace, info.podName))
            if pod is not None and not pod.finished and (not info.podUID or pod.metadata.uid == info.podUID):
                return
            await self._down(slurm, node, fence_reason(node))

        return await fan_out.each(nodes, fence)

    async def judge(
        self, slurm: SlurmCluster, suspects: Iterable[Worker], ages: Mapping[str, float]
    ) -> tuple[list[Worker], tuple[str, ...]]:
        """Ends jobs that have lost their processes with a restarted slurmd; returns the cleared suspects, and troubles.

        `ages` says of workers whose slurmd came up before our eyes how many seconds ago that was.
        """
        workers = list(suspects)
        if not workers:
            return [], ()
        cleared: list[Worker] = []
        unended: list[str] = []

        async def look(worker: Worker) -> None:
            name, node = worker.slurm_name, worker.node
            noticed = await self._noticed_at(worker, now, ages)
            # Memory is not good enough for an act that ends jobs: each is read again.
            jobs = [await slurm.jobs.still_on(job.job_id, name) for job in slurm.jobs.on(name)]
            created = worker.pod.metadata.creationTimestamp
            found = health.verdict([job for job in jobs if job is not None], worker.started_at, noticed, created)
            if found.cleared:
                cleared.append(worker)
            if found.lost and found.alone and node is not None:
                await self._down(slurm, node, f"{REASON_PREFIX}Pod ({worker.key}) was restarted under a running job")
            else:
                unended.extend(await fan_out.each(found.lost, lambda job: self._end(slurm, job)))

        try:
            now = await slurm.client.now()
            await slurm.jobs.update(within=0.0)
        except SlurmError as error:
            return [], (str(error),)
        troubles = await fan_out.each(workers, look) if slurm.jobs.complete else ()
        return cleared, (*troubles, *unended)

    async def _noticed_at(self, worker: Worker, now: int, ages: Mapping[str, float]) -> datetime | None:
        """When this slurmd was first noticed, by slurmctld's clock, which is put on record before it is used.

        Another process would notice it later, and take jobs that began in between for older than it.
        """
        if worker.noticed_at is not None or worker.name not in ages:
            return worker.noticed_at
        moment, meta = now - int(ages[worker.name]), worker.pod.metadata
        record = {"uid": meta.uid, "annotations": {names.SLURMD_NOTICED: f"{moment} {worker.container}"}}
        await self._kube.patch(
            POD, Key(meta.namespace, meta.name), {"metadata": record}, type="strategic", subresource="status"
        )
        return datetime.fromtimestamp(moment, UTC)

    async def late(self, slurm: SlurmCluster, nodes: Iterable[Overdue]) -> tuple[list[str], tuple[str, ...]]:
        """Those nodes whose drain deadline has passed by slurmctld's clock too, on which the drain began; and troubles.

        The plan went by our own clock, which may have jumped.
        """
        wanted = list(nodes)
        if not wanted:
            return [], ()
        found: list[str] = []

        async def look(overdue: Overdue) -> None:
            node = (await slurm.snapshot.refresh([overdue.node]))[overdue.node]
            if node is None or not node.drain or not node.reason.startswith(overdue.reason):
                return
            since = node.reason_changed_at.value
            if since and since + overdue.patience <= now:
                found.append(overdue.node)

        try:
            now = await slurm.client.now()
        except SlurmError as error:
            return [], (str(error),)
        troubles = await fan_out.each(wanted, look)
        return sorted(found), troubles

    async def end_jobs(self, slurm: SlurmCluster, nodes: Iterable[str], *, requeue: bool) -> tuple[str, ...]:
        """Requeues or cancels what still runs on nodes whose drain deadline has passed, as their owner asked."""

        async def end(place: tuple[int, str]) -> None:
            job = await slurm.jobs.still_on(*place)
            if job is None:
                return
            if requeue and not job.requeue:
                text = f"job {job.job_id} on node {place[1]} cannot be requeued"
                raise Refused(0, f"{text}: cancel it, or set drain.policy to Cancel")
            await (slurm.client.requeue_job if requeue else slurm.client.cancel_job)(job.job_id)

        try:
            await slurm.jobs.update(within=0.0)
        except SlurmError as error:
            return (str(error),)
        places = {job.job_id: name for name in nodes for job in slurm.jobs.on(name)}
        return await fan_out.each(sorted(places.items()), end)

    async def _end(self, slurm: SlurmCluster, job: Job) -> None:
        """Only this job, because others on its node are well."""
        log.warning("ending a job that has lost its processes", job=job.job_id, nodes=job.nodes)
        await (slurm.client.requeue_job if job.requeue else slurm.client.cancel_job)(job.job_id)

    async def _down(self, slurm: SlurmCluster, judged: Node, reason: str) -> None:
        """Takes a node down if it still is what was judged; an admin's reason for a drain stays."""
        node = (await slurm.snapshot.refresh([judged.name]))[judged.name]
        if node is None or not node.busy or node.down or node.comment != judged.comment:
            return
        log.warning("fencing a Slurm node", node=node.name, reason=reason)
        theirs = node.reason and foreign_reason(node)
        await slurm.client.update_nodes([node.name], NodeUpdate(state=("DOWN",)) if theirs else NodeUpdate.down(reason))
        await self._read_back(slurm, [node.name])

    async def _read_back(self, slurm: SlurmCluster, names: Iterable[str]) -> None:
        async def read(name: str) -> None:
            await slurm.snapshot.refresh([name])

        await fan_out.each(names, read)
