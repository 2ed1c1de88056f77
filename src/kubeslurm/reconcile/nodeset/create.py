"""Creates workers, and before them what their pods need."""

from collections.abc import Callable, Iterable

import msgspec

from kubeslurm.api import names, slots
from kubeslurm.api.kinds import CONTROLLER_REVISION, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.build.worker import pod as worker
from kubeslurm.build.worker import shared, ssh
from kubeslurm.build.worker.revision import Choice
from kubeslurm.control import failures, fan_out, refusals, second_owner
from kubeslurm.control.fan_out import Error
from kubeslurm.control.refusals import Refusals
from kubeslurm.control.registration import Context
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import AlreadyExists
from kubeslurm.reconcile.nodeset.claims import Claims
from kubeslurm.reconcile.nodeset.remove import describe
from kubeslurm.report.events import Event
from kubeslurm.report.failures import Failure
from kubeslurm.report.reasons import Reason


class Created(msgspec.Struct, frozen=True):
    """What went wrong, and the Slurm names that other pods still have."""

    failures: tuple[Failure, ...] = ()
    names_taken: tuple[str, ...] = ()
    claims_going: tuple[str, ...] = ()  # claims of an earlier worker that must be gone first


class Create:
    """Creates pods, and writes shared objects, claims and the history of templates."""

    def __init__(self, context: Context, clock: Callable[[], float]) -> None:
        self._kube = context.kube
        self._caches = context.caches
        self._events = context.events
        self._cluster_domain = context.options.cluster_domain
        self._claims = Claims(context.kube)
        self._refusals = Refusals(clock)

    def forget(self, nodeset: NodeSet) -> None:
        """Drops what was remembered about a NodeSet that is over."""
        self._refusals.forget(nodeset.metadata.uid)

    async def prepare(
        self, nodeset: NodeSet, siblings: Iterable[NodeSet], workers: Iterable[Worker], revision: Choice
    ) -> tuple[Error, ...]:
        """Writes what pods need before they can start, and the history of their template."""
        wanted = shared.objects(tuple(siblings) or (nodeset,), nodeset.spec.controllerRef.name)
        ssh_config = ssh.config(nodeset)

        async def apply(tree: Tree) -> None:
            await self._kube.apply(second_owner.added(self._caches, Key(*nodeset.controller_key), tree))

        errors = await self._claims.restore(nodeset, workers)
        errors += await fan_out.for_each([*wanted, *([ssh_config] if ssh_config else [])], apply)
        return errors + await fan_out.for_each([revision], lambda choice: self._write_history(nodeset, choice))

    async def create(
        self,
        controller: Controller,
        nodeset: NodeSet,
        facts: Facts,
        wanted: Iterable[Slot],
        is_taken: Callable[[NodeSet, str], bool],
    ) -> Created:
        """Creates missing workers; one whose Slurm name another pod claims waits until that pod is gone."""
        slots_by_name = {slot: slots.slurm_name(nodeset, slot) for slot in wanted}
        taken = tuple(slot.hostname for slot, name in slots_by_name.items() if is_taken(nodeset, name))
        free = [slot for slot in slots_by_name if slot.hostname not in taken]
        # A quota may have room for one that it refused to others, so a slot that is newly vacant is asked for at once.
        state = (nodeset.metadata.generation, controller.metadata.generation, *free)
        known = self._refusals.current(nodeset.metadata.uid, state) if free else ""
        if known:
            return Created((_refused(known),), taken)
        made: list[str] = []
        going: list[str] = []
        refused: list[str] = []

        async def make(slot: Slot) -> None:
            if refused:  # what is wrong with one worker is wrong with the others as well
                return
            try:
                if claim := await self._claims.prepare(nodeset, slot):
                    going.append(claim)
                else:
                    made.extend(await self._make(controller, nodeset, slot, facts))
            except refusals.REFUSED as error:
                refused.append(refusals.words(error, names.SLURMD))

        errors = await fan_out.for_each(free, make)
        self._remember(nodeset, state, made, refused)
        return Created((*map(_refused, sorted(refused)[:1]), *failures.of(errors)), taken, tuple(sorted(going)))

    def _remember(self, nodeset: NodeSet, state: object, made: list[str], refused: list[str]) -> None:
        uid = nodeset.metadata.uid
        if made:
            self._refusals.forget(uid)
            self._events.normal(nodeset, Event.SUCCESSFUL_CREATE, f"created {describe(made)}")
        if refused:
            self._refusals.add(uid, state, min(refused))
            self._events.warning(nodeset, Event.FAILED_CREATE, min(refused))

    async def _make(self, controller: Controller, nodeset: NodeSet, slot: Slot, facts: Facts) -> tuple[str, ...]:
        """Makes one worker; returns its name unless it was there already."""
        cluster = Key(*nodeset.controller_key)
        if second_owner.reference(self._caches, cluster) is None and not controller.deleting:
            return ()  # the Controller's own pass makes it, and then this NodeSet has another pass
        tree = worker.pod(controller, nodeset, slot, facts.revision, facts.startup_hashes, self._cluster_domain)
        try:
            made = await self._kube.create(second_owner.added(self._caches, cluster, tree))
        except AlreadyExists:
            # Not ours, or not seen yet: read it, so that the next pass knows.
            await self._kube.get(POD, Key(nodeset.namespace, slots.pod_name(nodeset, slot)))
            return ()
        return (made.metadata.name,)

    async def _write_history(self, nodeset: NodeSet, choice: Choice) -> None:
        if choice.create is not None and not await self._ensure(choice.create):
            await self._adopt_revision(nodeset, choice.create)
        if choice.renumber is not None:
            name, number = choice.renumber
            await self._kube.patch(CONTROLLER_REVISION, Key(nodeset.namespace, name), {"revision": number})
        for name in choice.drop:
            await self._kube.delete(CONTROLLER_REVISION, Key(nodeset.namespace, name))

    async def _adopt_revision(self, nodeset: NodeSet, tree: Tree) -> None:
        """Takes a revision that an orphaned NodeSet of the same name has left."""
        metadata = tree["metadata"]
        key = Key(nodeset.namespace, metadata["name"])
        found = await self._kube.get(CONTROLLER_REVISION, key)
        if found is not None and found.metadata.controller is None:
            change = {"metadata": {"uid": found.metadata.uid, "ownerReferences": metadata["ownerReferences"]}}
            await self._kube.patch(CONTROLLER_REVISION, key, change)

    async def _ensure(self, tree: Tree) -> bool:
        """Creates an object; whether it was not there yet."""
        try:
            await self._kube.create(tree)
        except AlreadyExists:
            return False
        return True


def _refused(message: str) -> Failure:
    return Failure(Reason.REJECTED, message)
