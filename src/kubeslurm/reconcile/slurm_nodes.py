"""What a NodeSet's reconcile does to Slurm nodes: updates, fences, deleted records, jobs past their time."""

from collections.abc import Iterable, Mapping

import structlog

from kubeslurm.api.kinds import POD
from kubeslurm.decide import sync
from kubeslurm.decide.facts import PodInfo, Worker
from kubeslurm.decide.health import fence_reason
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.reconcile import crowd
from kubeslurm.reconcile.jobs import Ledgers, started_at
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import NotFound, Refused, SlurmError
from kubeslurm.slurm.models import REASON_PREFIX, Node, NodeUpdate

log = structlog.get_logger(__name__)

# So few changed nodes are read back singly, which beats waiting for the next poll; more come with the next list anyway.
READ_BACK = 16


class SlurmNodes:
    """Writes to Slurm on behalf of one kind of reconcile; every method isolates the nodes from each other."""

    def __init__(self, kube: Kube, ledgers: Ledgers) -> None:
        self._kube = kube
        self._ledgers = ledgers

    async def update(self, slurm: SlurmCluster, changes: Mapping[str, NodeUpdate]) -> tuple[str, ...]:
        """Applies the changes, each distinct one in a single call."""

        async def tell(group: tuple[NodeUpdate, list[str]]) -> None:
            update, names = group
            try:
                await slurm.client.update_nodes(names, update)
            except NotFound:
                return  # deleted meanwhile; the next list will say so

        troubles = await crowd.each(sync.grouped(changes), tell)
        if changes and len(changes) <= READ_BACK:
            await self._read_back(slurm, changes)
        return troubles

    async def delete(self, slurm: SlurmCluster, names: Iterable[str]) -> tuple[str, ...]:
        """Deletes records of nodes that have no pod any more; Slurm itself refuses while a job holds one."""
        wanted = list(names)
        if not wanted:
            return ()
        try:
            await slurm.client.delete_nodes(wanted)
        except Refused as error:
            log.info("Slurm keeps a node record", reason=str(error))
        except SlurmError as error:
            return (str(error),)
        if len(wanted) <= READ_BACK:
            await self._read_back(slurm, wanted)
        return ()

    async def fence_orphans(self, slurm: SlurmCluster, nodes: Iterable[Node]) -> tuple[str, ...]:
        """Takes busy nodes down whose pod is gone for certain, so that Slurm requeues their jobs now."""

        async def fence(node: Node) -> None:
            info = PodInfo.parse(node.comment)
            pod = await self._kube.get(POD, Key(info.namespace, info.podName))
            if pod is not None and (not info.podUID or pod.metadata.uid == info.podUID):
                return
            await self._down(slurm, node.name, fence_reason(node))

        return await crowd.each(nodes, fence)

    async def judge(self, slurm: SlurmCluster, suspects: Iterable[Worker]) -> dict[str, bool]:
        """Whether each suspect holds a job that is older than its slurmd container; such a node is taken down."""
        workers = list(suspects)
        if not workers:
            return {}
        ledger = self._ledgers.of(slurm)
        verdicts: dict[str, bool] = {}
        try:
            await ledger.update(within=0.0)
        except SlurmError:
            return {}
        for worker in workers:
            jobs = ledger.on(worker.slurm_name)
            if not jobs or not ledger.complete:
                continue  # busy, yet no job found: look again rather than guess
            since = worker.started_at
            lost = [job for job in jobs if since and (start := started_at(job)) and start < since]
            verdicts[worker.name] = bool(lost)
            if lost:
                reason = f"{REASON_PREFIX}Pod ({worker.key}) was restarted under a running job"
                await crowd.each([worker.slurm_name], lambda name, text=reason: self._down(slurm, name, text))  # type: ignore[misc]
        return verdicts

    async def end_jobs(self, slurm: SlurmCluster, nodes: Iterable[str], *, requeue: bool) -> tuple[str, ...]:
        """Requeues or cancels what still runs on nodes whose drain deadline has passed, as their owner asked."""
        names = list(nodes)
        if not names:
            return ()
        ledger = self._ledgers.of(slurm)
        try:
            await ledger.update(within=0.0)
        except SlurmError as error:
            return (str(error),)
        jobs = {job.job_id for name in names for job in ledger.on(name)}
        return await crowd.each(sorted(jobs), slurm.client.requeue_job if requeue else slurm.client.cancel_job)

    async def _down(self, slurm: SlurmCluster, name: str, reason: str) -> None:
        node = (await slurm.snapshot.refresh([name]))[name]
        if node is None or not node.busy or node.down:
            return
        log.warning("fencing a Slurm node", node=name, reason=reason)
        await slurm.client.update_nodes([name], NodeUpdate.down(reason))
        await self._read_back(slurm, [name])

    async def _read_back(self, slurm: SlurmCluster, names: Iterable[str]) -> None:
        try:
            await slurm.snapshot.refresh(names)
        except SlurmError as error:
            log.info("changed nodes could not be read back", reason=str(error))
