"""Makes the claims of workers, and lets them go with workers that are scaled in."""

from collections.abc import Iterable

from kubeslurm.api.kinds import PERSISTENT_VOLUME_CLAIM
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.build.worker import claims
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists


class Claims:
    """The claims of a NodeSet's workers; they are not watched, because few NodeSets have any."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def prepare(self, nodeset: NodeSet, slot: Slot) -> str:
        """Makes the claims of a new worker; the name of one that is still to go, for which the worker must wait."""
        for tree in claims.objects(nodeset, slot):
            if await self._ensure(tree):
                return str(tree["metadata"]["name"])
        return ""

    async def restore(self, nodeset: NodeSet, workers: Iterable[Worker]) -> tuple[Error, ...]:
        """Makes claims again that a pod without a node may be waiting for."""
        if not nodeset.spec.volumeClaimTemplates:
            return ()
        pods = (each.pod for each in workers if not each.pod.spec.nodeName and not each.terminating)

        async def ensure(tree: Tree) -> None:
            await self._ensure(tree)

        return await fan_out.for_each([tree for pod in pods for tree in claims.of_pod(nodeset, pod)], ensure)

    async def release(self, nodeset: NodeSet, workers: Iterable[Worker]) -> None:
        """Hands the claims of scaled-in workers to their pods, with which they then go."""
        for worker in workers:
            for name in claims.mounted(nodeset, worker.pod):
                owner = claims.owned_by(worker.pod)
                await self._kube.patch(PERSISTENT_VOLUME_CLAIM, Key(nodeset.namespace, name), owner)

    async def _ensure(self, tree: Tree) -> bool:
        """Makes a claim; whether there is one of that name that will be gone soon."""
        try:
            await self._kube.create(tree)
        except AlreadyExists:
            metadata = tree["metadata"]
            found = await self._kube.get(PERSISTENT_VOLUME_CLAIM, Key(metadata["namespace"], metadata["name"]))
            return found is None or claims.goes(found)
        return False
