"""Accounting: keeps one slurmdbd, its address and its configuration as declared."""

from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING, CONTROLLER, POD, STATEFULSET
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.build import accounting as build
from kubeslurm.build.common import digest
from kubeslurm.control import references, refusals, status, workloads
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.kube import logs
from kubeslurm.kube.caches import Caches
from kubeslurm.report import accounting as report
from kubeslurm.report.conditions import Finding, degraded
from kubeslurm.report.events import Event
from kubeslurm.report.reasons import Reason

# slurmdbd repeats its complaints every few seconds; how often its log is read, and how far back it counts.
STARTING_PAUSE = 5.0
RUNNING_PAUSE = 30.0
MEMORY = 45


class AccountingReconciler:
    """One pass: look, apply configuration, Service and StatefulSet, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events
        self._settings: dict[Key, tuple[str, tuple[str, ...]]] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        accounting = self.caches.store(ACCOUNTING).get(key)
        if accounting is None:
            return None
        if accounting.deleting and await self._released(accounting):
            return None
        if not accounting.deleting:
            accounting = await self.kube.add_finalizer(ACCOUNTING, accounting, names.FINALIZER)

        pod = self.caches.store(POD).get(Key(key.namespace, f"{names.accounting(key.name)}-0"))
        begun = await self._begun(pod)
        blocked = () if accounting.spec.external or accounting.deleting else missing(self.caches, accounting)
        refused = None
        if not (blocked or accounting.deleting or accounting.spec.external):
            refused = await refusals.finding(self._apply(accounting, begun), names.SLURMDBD)

        seen = report.Seen(
            blocked=blocked[0] if blocked else refused,
            pod=pod,
            log=await self._log(pod),
            begun=begun,
            settings=await self._complaints(pod),
            held_by=self._holders(accounting) if accounting.deleting else (),
            now=datetime.now(UTC),
        )
        await status.write(self.kube, ACCOUNTING, accounting, report.status(accounting, seen))
        if pod is None:
            return refusals.again(refused)
        return Requeue(after=RUNNING_PAUSE if pod.ready else STARTING_PAUSE)

    async def _apply(self, accounting: Accounting, begun: str | None) -> None:
        files = self._files(accounting)
        current = self.caches.store(STATEFULSET).get(Key(accounting.namespace, names.accounting(accounting.name)))
        await self.kube.apply(build.secret(accounting, files.conf))
        await self.kube.apply(build.service(accounting))
        # A conversion that is cut short leaves a broken database: whatever changed has to wait for its end.
        if report.busy(begun):
            if why := report.held(begun):
                self.events.normal(accounting, Event.UPDATE_POSTPONED, why)
        else:
            await workloads.keep(self.kube, self.events, accounting, build.statefulset(accounting, files), current)

    def _files(self, accounting: Accounting) -> build.Files:
        spec, namespace = accounting.spec, accounting.namespace
        storage, jwks = spec.storageConfig, spec.jwksKeyRef
        password_ref = storage.passwordKeyRef if storage else None
        password = references.key_bytes(references.secret(self.caches, namespace, password_ref), password_ref) or b""
        keys = references.configmap(self.caches, namespace, jwks.name) if jwks else None
        return build.Files(
            conf=build.slurmdbd_conf(accounting, password.decode().rstrip("\n")),
            slurm_key=digest.of_values(references.data_of(references.secret(self.caches, namespace, spec.slurmKeyRef))),
            jwt_key=digest.of_values(references.data_of(references.secret(self.caches, namespace, spec.jwt_ref))),
            jwks=keys.data.get(jwks.key, "") if keys and jwks else "",
        )

    async def _log(self, pod: Pod | None) -> str:
        container = pod.container_status(names.SLURMDBD) if pod else None
        if pod is None or container is None or container.state.running is None:
            return ""
        return await logs.recent(self.kube, Key(*pod.key), names.SLURMDBD, seconds=MEMORY)

    async def _begun(self, pod: Pod | None) -> str | None:
        """The words of a slurmdbd that has not been ready yet: a conversion is told nowhere else."""
        container = pod.container_status(names.SLURMDBD) if pod else None
        if pod is None or container is None or container.state.running is None:
            return ""
        # It listens only after the conversion, and the kubelet remembers that its startup probe has succeeded. The pods
        # of another operator may have no such probe, and count as started at once.
        ours = names.RESTART_HASH in pod.metadata.annotations
        if pod.ready or (ours and container.started):
            return ""
        return await logs.first_and_last(self.kube, Key(*pod.key), names.SLURMDBD)

    async def _complaints(self, pod: Pod | None) -> tuple[str, ...]:
        """Slurmdbd looks at the database's settings once, when it starts: so do we, once per container."""
        container = pod.container_status(names.SLURMDBD) if pod and pod.ready else None
        if pod is None or container is None:
            return ()
        key = Key(*pod.key)
        known, found = self._settings.get(key, ("", ()))
        if known != container.containerID:
            said = await logs.beginning(self.kube, key, names.SLURMDBD)
            if said is None:
                return ()
            found = report.complaints(said)
            self._settings[key] = (container.containerID, found)
        return found

    def _holders(self, accounting: Accounting) -> tuple[str, ...]:
        """The clusters with NodeSets whose last jobs are still to be recorded."""
        clusters = self._clusters(accounting)
        return tuple(each.name for each in clusters if references.nodesets(self.caches, Key(*each.key)))

    async def _released(self, accounting: Accounting) -> bool:
        forced = accounting.metadata.annotations.get(names.FORCE_DELETE) == "true"
        if self._holders(accounting) and not forced:
            return False
        await self.kube.remove_finalizer(ACCOUNTING, accounting, names.FINALIZER)
        return True

    def _clusters(self, accounting: Accounting) -> list[Controller]:
        return [
            each
            for each in self.caches.store(CONTROLLER)
            if each.namespace == accounting.namespace
            and each.spec.accountingRef is not None
            and each.spec.accountingRef.name == accounting.name
        ]


def missing(caches: Caches, accounting: Accounting) -> tuple[Finding, ...]:
    """What slurmdbd cannot start without; a pod whose files are missing would only be retried ever more slowly."""
    spec, namespace = accounting.spec, accounting.namespace
    storage, jwks = spec.storageConfig, spec.jwksKeyRef
    if storage is None:
        return (degraded(Reason.INVALID_SPEC, "spec.storageConfig is not set: say where the database is"),)
    refs = (
        ("slurmKeyRef", spec.slurmKeyRef),
        ("jwtKeyRef", spec.jwt_ref),
        ("storageConfig.passwordKeyRef", storage.passwordKeyRef),
    )
    keys = [
        degraded(Reason.SECRET_KEY_NOT_FOUND, references.missing_key(namespace, ref, field))
        for field, ref in refs
        if references.key_bytes(references.secret(caches, namespace, ref), ref) is None
    ]
    if jwks is not None and references.configmap(caches, namespace, jwks.name) is None:
        keys.append(degraded(Reason.CONFIG_MAP_NOT_FOUND, f"ConfigMap {namespace}/{jwks.name} is missing: create it"))
    return tuple(keys)
