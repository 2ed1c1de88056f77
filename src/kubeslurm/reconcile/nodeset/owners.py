"""Owner references of workers: those that are missing, and those that a deletion has taken away."""

from collections.abc import Iterable

from kubeslurm.api.kinds import CONTROLLER_REVISION, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import owners, revision
from kubeslurm.control import deletion, fan_out, second_owner
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import NotFound


class Owners:
    """Completes the references of pods while their NodeSet lives, and reads from them how it was deleted."""

    def __init__(self, kube: Kube, caches: Caches) -> None:
        self._kube = kube
        self._caches = caches
        self._drained: set[str] = set()  # uids of deleted NodeSets of which it is certain that their workers must go

    async def complete(self, nodeset: NodeSet, workers: Iterable[Worker]) -> tuple[Error, ...]:
        """Adds owners to pods that lack one: those of another operator, and those that were orphaned once."""
        second = second_owner.reference(self._caches, Key(*nodeset.controller_key))
        if second is None:
            return ()

        async def write(item: tuple[Worker, list[Tree]]) -> None:
            pod = item[0].pod
            try:
                await self._kube.patch(POD, Key(*pod.key), owners.patch(pod, item[1]), type="strategic")
            except NotFound:
                return

        pods = ((each, owners.missing(nodeset, each.pod, second)) for each in workers if not each.terminating)
        return await fan_out.for_each([item for item in pods if item[1]], write)

    async def are_kept(self, nodeset: NodeSet) -> bool:
        """Whether the user deleted the NodeSet with --cascade=orphan, and so keeps its pods.

        Garbage collection removes the finalizer that says so as soon as no child names the NodeSet as its owner any
        more. Its revision then exists without an owner; any other kind of deletion leaves or deletes both. It is read
        from the server: what is in memory may be older than the deletion.
        """
        uid = nodeset.metadata.uid
        if deletion.is_orphaning(nodeset):
            return True
        if uid in self._drained:
            return False
        name = revision.name_of(nodeset, nodeset.status.nodeSetHash)
        found = await self._kube.get(CONTROLLER_REVISION, Key(nodeset.namespace, name))
        if found is not None and not found.deleting and found.metadata.controller is None:
            return True
        self._drained.add(uid)
        return False

    def forget(self, nodeset: NodeSet) -> None:
        """Drops what was remembered about a NodeSet that is over."""
        self._drained.discard(nodeset.metadata.uid)
