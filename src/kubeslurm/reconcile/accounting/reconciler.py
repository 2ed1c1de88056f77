"""Accounting: keeps one slurmdbd, its address and its configuration as declared."""

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.build import accounting as build
from kubeslurm.build.common import digest
from kubeslurm.control import deletion, key_change, references, refusals, status, workloads
from kubeslurm.control.memory import Memories
from kubeslurm.control.registration import Context
from kubeslurm.decide.accounting import Facts, can_apply
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.accounting.observe import Memory, nodesets, observe
from kubeslurm.report import accounting as report
from kubeslurm.report.events import Event

# How often the log of slurmdbd is read.
STARTING_PAUSE = 5.0
RUNNING_PAUSE = 30.0


class AccountingReconciler:
    """One pass: observe, apply configuration, Service and StatefulSet, report."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events
        self.memories = Memories(Memory)

    async def reconcile(self, key: Key) -> Requeue | None:
        accounting = self.caches.store(ACCOUNTING).get(key)
        if accounting is None:
            self.memories.forget(key)
            return None
        if accounting.deleting:
            if await deletion.release(self.kube, ACCOUNTING, accounting, nodesets(self.caches, accounting)):
                return None
        else:
            accounting = await self.kube.add_finalizer(ACCOUNTING, accounting, names.FINALIZER)

        facts = await observe(self.context, accounting, self.memories.of(key))
        rejected = None
        if can_apply(accounting, facts):
            rejected = await refusals.rejection(self.apply(accounting, facts), names.SLURMDBD)
        await status.write(self.kube, ACCOUNTING, accounting, report.status(accounting, facts, rejected))
        if facts.pod is None:
            return refusals.again(rejected)
        return Requeue(after=RUNNING_PAUSE if facts.pod.ready else STARTING_PAUSE)

    async def apply(self, accounting: Accounting, facts: Facts) -> None:
        files = self._files(accounting, facts)
        await self.kube.apply(build.secret(accounting, files.conf))
        await self.kube.apply(build.service(accounting))
        # A conversion that is cut short leaves a broken database: whatever changed has to wait for its end.
        if facts.is_busy:
            if message := report.postponed(facts):
                self.events.normal(accounting, Event.UPDATE_POSTPONED, message)
            return
        desired = build.statefulset(accounting, files)
        await workloads.keep(self.kube, self.events, accounting, desired, facts.statefulset)

    def _files(self, accounting: Accounting, facts: Facts) -> build.Files:
        spec, namespace = accounting.spec, accounting.namespace
        jwks = spec.jwksKeyRef
        keys = references.configmap(self.caches, namespace, jwks.name) if jwks else None
        # slurmdbd keeps its keys as long as slurmctld does: with another one it would hear of no job.
        held = spec.slurmKeyRef and key_change.is_pending_in(self.caches, namespace, spec.slurmKeyRef.name)
        given = workloads.given(facts.statefulset, names.SLURM_KEY_HASH, names.JWT_KEY_HASH) if held else {}
        return build.Files(
            conf=build.slurmdbd_conf(accounting, facts.password or ""),
            slurm_key=given.get(names.SLURM_KEY_HASH) or self._hash(namespace, spec.slurmKeyRef),
            jwt_key=given.get(names.JWT_KEY_HASH) or self._hash(namespace, spec.jwt_ref),
            jwks=keys.data.get(jwks.key, "") if keys and jwks else "",
        )

    def _hash(self, namespace: str, ref: SecretKeySelector | None) -> str:
        return digest.of_values(references.data_of(references.secret(self.caches, namespace, ref)))
