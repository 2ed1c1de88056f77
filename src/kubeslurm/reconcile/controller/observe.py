"""Reads everything that a pass over a Controller goes by."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, NODE, POD, STATEFULSET
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.build.common import digest
from kubeslurm.build.controller import trial
from kubeslurm.build.controller.config import referenced
from kubeslurm.control import references
from kubeslurm.control.registration import Context
from kubeslurm.decide.config import running
from kubeslurm.decide.config.facts import Configuration, Facts, Progress, Reading, Trial
from kubeslurm.decide.config.running import Running
from kubeslurm.decide.config.trial import outcome
from kubeslurm.decide.missing import Missing
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.reconcile.controller.backups import with_backups
from kubeslurm.reconcile.controller.desired import Desired, desire
from kubeslurm.reconcile.controller.key_wait import with_key_change
from kubeslurm.reconcile.controller.lost_node import with_missing_node
from kubeslurm.reconcile.controller.memory import DeliveryRecord, Memory
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError

SLURM_DEADLINE = 3.0


async def observe(context: Context, controller: Controller, memory: Memory, clock: Callable[[], float]) -> Facts:
    """All facts of one pass."""
    facts = with_backups(controller, await _read(context, controller, memory, clock))
    facts = await with_missing_node(context.kube, facts, memory, clock)
    return await with_key_change(context, controller, facts)


async def _read(context: Context, controller: Controller, memory: Memory, clock: Callable[[], float]) -> Facts:
    """What Kubernetes holds, and what Slurm says."""
    caches = context.caches
    facts = _kubernetes(caches, controller, memory)
    slurm = context.clusters.of(Key(*controller.key))
    answering = slurm if slurm is not None and slurm.snapshot.fresh() else None
    desired = Desired()
    if not (facts.missing or facts.undecoded or controller.deleting):
        old = facts.accepted or _delivered(caches, controller)[1] or memory.accepted
        desired = await desire(caches, controller, old, answering)
    return msgspec.structs.replace(
        facts,
        desired=desired.config,
        refused=desired.refused,
        kept=desired.kept,
        trial=_trial(caches, controller, desired.config, memory, clock()),
        progress=await _progress(memory.delivery, facts.pod, answering, clock),
        reachable=answering is not None,
        version=await _version(memory, facts.pod, answering),
        nodes=len(slurm.snapshot.store) if slurm else controller.status.nodes,
    )


def _kubernetes(caches: Caches, controller: Controller, memory: Memory) -> Facts:
    key = Key(*controller.key)
    pod = caches.store(POD).get(Key(key.namespace, names.controller_pod(key.name)))
    missing = tuple(_missing(caches, controller))
    delivered, found = _delivered(caches, controller)
    if found is not None and found.digest == delivered:
        memory.accepted = found
    accepted = memory.accepted if memory.accepted and memory.accepted.digest == delivered else None
    return Facts(
        now=datetime.now(UTC),
        external=controller.spec.external,
        missing=missing,
        undecoded=tuple(references.undecoded(caches, controller, referenced(controller))),
        delivered=delivered,
        accepted=accepted,
        edited=found is not None and found.digest != delivered,
        running=controller.status.configHash,
        pod=pod,
        node=caches.store(NODE).get(Key("", pod.spec.nodeName)) if pod else None,
        statefulset=caches.store(STATEFULSET).get(Key(key.namespace, names.controller(key.name))),
        key_hashes=_key_hashes(caches, controller),
        accounting_awaited=_accounting_awaited(references.accounting(caches, controller)),
        nodesets=len(references.holders(caches, key)),
        restapis=len(references.restapis(caches, key)),
    )


def _delivered(caches: Caches, controller: Controller) -> tuple[str, Configuration | None]:
    """The digest of the configuration that was delivered, and what the ConfigMap holds now."""
    found = caches.store(CONFIGMAP).get(Key(controller.namespace, names.config(controller.name)))
    if found is None:
        return "", None
    now = Configuration(digest.of_files(found.data), found.data)
    return found.metadata.annotations.get(names.CONFIG_DELIVERED) or now.digest, now


def _trial(
    caches: Caches, controller: Controller, desired: Configuration | None, memory: Memory, now: float
) -> Trial | None:
    """The trial of the desired configuration, with the time since it was first seen to be inconclusive."""
    name = names.config_trial(controller.name, desired.digest) if desired else ""
    found = outcome(caches.store(POD).get(Key(controller.namespace, name)), trial.CONTAINER)
    if found is None or found.outcome != "inconclusive":
        memory.inconclusive_since = None
        return found
    if memory.inconclusive_since is None:
        memory.inconclusive_since = now
    return Trial(found.outcome, found.message, now - memory.inconclusive_since)


async def _progress(
    record: DeliveryRecord, pod: Pod | None, slurm: SlurmCluster | None, clock: Callable[[], float]
) -> Progress:
    """How far the delivery to this pod has come; Slurm is asked only after a reconfigure."""
    if pod is None or record.pod_uid != pod.metadata.uid:
        return Progress()
    reading = await _reading(slurm) if slurm is not None and record.reconfigured_at is not None else None
    now = clock()
    return Progress(
        digest=record.digest,
        since_refresh=None if record.refreshed_at is None else now - record.refreshed_at,
        since_reconfigure=None if record.reconfigured_at is None else now - record.reconfigured_at,
        since_read=None if record.read_at is None else now - record.read_at,
        attempts=record.attempts,
        before=record.before,
        reading=reading,
    )


async def _reading(slurm: SlurmCluster) -> Reading | None:
    try:
        async with asyncio.timeout(SLURM_DEADLINE):
            now = Running.of(await slurm.client.conf())
            if now is None:
                return Reading(None, responding=any(ping.responding for ping in await slurm.client.ping()))
    except (SlurmError, TimeoutError):
        return None
    return Reading(now, late_workers=tuple(running.late_workers(slurm.snapshot.store, now.read_at)))


async def _version(memory: Memory, pod: Pod | None, slurm: SlurmCluster | None) -> str:
    """The release of slurmctld, asked for once per container."""
    if slurm is None:
        return ""
    container = pod.container_status(names.SLURMCTLD) if pod else None
    instance = container.containerID if container else "external"
    if memory.version_of != instance or not memory.version:
        try:
            memory.version, memory.version_of = await slurm.client.release(), instance
        except SlurmError:
            return ""
    return memory.version


def _key_hashes(caches: Caches, controller: Controller) -> dict[str, str]:
    refs = {names.SLURM_KEY_HASH: controller.spec.slurmKeyRef, names.JWT_KEY_HASH: controller.spec.jwt_ref}
    return {
        annotation: digest.of_values(references.data_of(references.secret(caches, controller.namespace, ref)))
        for annotation, ref in refs.items()
    }


def _accounting_awaited(accounting: Accounting | None) -> str:
    if accounting is None or accounting.spec.external:
        return ""
    ready = any(each.type == "Ready" and each.status == "True" for each in accounting.status.conditions)
    return "" if ready else accounting.name


def _missing(caches: Caches, controller: Controller) -> Iterable[Missing]:
    spec, namespace = controller.spec, controller.namespace
    for field, ref in (("slurmKeyRef", spec.slurmKeyRef), ("jwtKeyRef", spec.jwt_ref)):
        if not (spec.external and ref is None):
            yield from references.missing_key(caches, namespace, ref, field)
    if not spec.external:
        yield from references.missing_configmaps(caches, namespace, referenced(controller))
    # Without it slurmctld would come up with no accounting at all, and lose what it should have recorded.
    accounting = spec.accountingRef
    if accounting is not None and accounting.name and references.accounting(caches, controller) is None:
        yield Missing("Accounting", namespace, accounting.name, "accountingRef")
