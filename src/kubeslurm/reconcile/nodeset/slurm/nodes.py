"""Writes to Slurm nodes: updates, fences, deleted records. Each irreversible write reads the node again first."""

from collections.abc import Collection, Iterable, Mapping

import structlog

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import POD
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.slurm import records, updates
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import NotFound, Refused, SlurmError
from kubeslurm.slurm.rest.models import Node, NodeUpdate

log = structlog.get_logger(__name__)

# So few changed nodes are read back singly, which beats waiting for the next poll; more come with the next list anyway.
READ_BACK = 16


class SlurmNodes:
    """Changes nodes; what fails for one node does not hold up the others."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def update(self, slurm: SlurmCluster, planned: Mapping[str, NodeUpdate]) -> tuple[Error, ...]:
        """Writes the updates, each distinct one in a single call; what is too much for one pass is left to the next."""
        # On a large cluster several passes are made before a list shows what the first of them wrote.
        unwritten = {name: update for name, update in planned.items() if not slurm.snapshot.is_written(name, update)}
        wanted = updates.permitted(unwritten, await self._read(slurm, updates.lifted(unwritten)))

        async def write(group: tuple[NodeUpdate, list[str]]) -> None:
            update, nodes = group
            try:
                await slurm.client.update_nodes(nodes, update)
            except NotFound:
                return  # deleted meanwhile; the next list will say so
            slurm.snapshot.wrote(nodes, update)

        calls = updates.calls(wanted)
        errors = await fan_out.for_each(calls, write)
        moved = [name for name, update in wanted.items() if update.state]  # nobody waits for a comment
        if len(moved) <= READ_BACK and sum(len(nodes) for _, nodes in calls) == len(wanted):
            await self._read_back(slurm, moved)
        else:
            slurm.snapshot.poll_soon()
        return errors

    async def delete_orphans(
        self, slurm: SlurmCluster, nodeset: NodeSet, orphaned: Collection[str], workers: Iterable[Worker]
    ) -> tuple[Error, ...]:
        """Deletes records without a pod; where a record names none, the API server is asked for pods not known yet."""
        unnamed = records.unnamed(orphaned, {name: slurm.snapshot.get(name) for name in orphaned})
        known = {worker.pod.metadata.uid for worker in workers}
        listed = known
        if unnamed:
            pods = await self._kube.list(POD, nodeset.namespace, labels.selector(names.SLURMD, nodeset.name))
            listed = {pod.metadata.uid for pod in pods}
        return await self.delete_records(slurm, records.deletable(orphaned, unnamed, known, listed))

    async def delete_records(self, slurm: SlurmCluster, nodes: Collection[str]) -> tuple[Error, ...]:
        """Deletes records in one call; Slurm itself refuses while a job holds one."""
        if not nodes:
            return ()
        try:
            await slurm.client.delete_nodes(nodes)
        except Refused as error:
            log.info("Slurm keeps a node record", reason=str(error))
            # Some may be gone all the same, and must not lend their drain to the next worker of that name.
            await self._read_back(slurm, nodes)
        except SlurmError as error:
            return (error,)
        else:
            slurm.snapshot.forget(nodes)  # or the next worker of that name would be shown with this one's drain
        return ()

    async def fence_orphans(self, slurm: SlurmCluster, nodes: Iterable[Node]) -> tuple[Error, ...]:
        """Takes busy nodes down whose pod is gone for certain, so that Slurm requeues their jobs now."""

        async def fence(node: Node) -> None:
            info = PodInfo.parse(node.comment)
            pod = await self._kube.get(POD, Key(info.namespace, info.podName))
            if not records.has_pod(node, pod):
                await self.fence(slurm, node, records.fence_reason(node))

        return await fan_out.for_each(nodes, fence)

    async def fence(self, slurm: SlurmCluster, planned: Node, reason: str) -> None:
        """Takes a node down if it still is as planned."""
        name = planned.name
        update = records.fence_update(planned, (await slurm.snapshot.refresh([name]))[name], reason)
        if update is None:
            return
        log.warning("fencing a Slurm node", node=name, reason=reason)
        await slurm.client.update_nodes([name], update)
        await self._read_back(slurm, [name])

    async def _read(self, slurm: SlurmCluster, nodes: Collection[str]) -> dict[str, Node | None]:
        """Nodes as Slurm has them now; of many, one list takes less time. What could not be read is left out."""
        snapshot = slurm.snapshot
        found: dict[str, Node | None] = {}

        async def read(name: str) -> None:
            found.update(await snapshot.refresh([name]))

        if len(nodes) <= READ_BACK:
            await fan_out.for_each(nodes, read)
            return found
        await snapshot.poll()
        return {} if snapshot.failure else {name: snapshot.get(name) for name in nodes}

    async def _read_back(self, slurm: SlurmCluster, nodes: Iterable[str]) -> None:
        async def read(name: str) -> None:
            await slurm.snapshot.refresh([name])

        await fan_out.for_each(nodes, read)
