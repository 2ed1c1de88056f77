"""Reads everything that a pass over an Accounting goes by."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, POD, STATEFULSET
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.build.accounting import password_of
from kubeslurm.control import references
from kubeslurm.control.registration import Context
from kubeslurm.decide.accounting import Facts
from kubeslurm.decide.missing import Missing
from kubeslurm.engine.key import Key
from kubeslurm.kube import logs
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.report.accounting import wrong_settings

# slurmdbd repeats its errors every few seconds; how far back its log counts.
RECENT_SECONDS = 45


class Memory(msgspec.Struct):
    """What this process remembers of one Accounting: slurmdbd checks the database's settings once per start."""

    container: str = ""
    wrong_settings: tuple[str, ...] = ()


async def observe(context: Context, accounting: Accounting, memory: Memory) -> Facts:
    """The facts of one pass."""
    kube, caches = context.kube, context.caches
    name = names.accounting(accounting.name)
    pod = caches.store(POD).get(Key(accounting.namespace, f"{name}-0"))
    return Facts(
        now=datetime.now(UTC),
        missing=() if accounting.spec.external or accounting.deleting else tuple(_missing(caches, accounting)),
        password=_password(caches, accounting),
        pod=pod,
        statefulset=caches.store(STATEFULSET).get(Key(accounting.namespace, name)),
        recent_log=await _recent_log(kube, pod),
        startup_log=await _startup_log(kube, pod),
        wrong_settings=await _wrong_settings(kube, pod, memory),
        clusters_with_nodesets=tuple(
            each.name for each in _clusters(caches, accounting) if references.holders(caches, Key(*each.key))
        ),
    )


def nodesets(caches: Caches, accounting: Accounting) -> tuple[object, ...]:
    """The NodeSets whose last jobs are still to be recorded."""
    clusters = _clusters(caches, accounting)
    return tuple(each for cluster in clusters for each in references.holders(caches, Key(*cluster.key)))


def _clusters(caches: Caches, accounting: Accounting) -> Iterable[Controller]:
    for controller in caches.store(CONTROLLER):
        ref = controller.spec.accountingRef
        if ref is not None and (controller.namespace, ref.name) == (accounting.namespace, accounting.name):
            yield controller


def _missing(caches: Caches, accounting: Accounting) -> Iterable[Missing]:
    """What slurmdbd cannot start without; a pod whose files are missing would only be retried ever more slowly."""
    spec, namespace = accounting.spec, accounting.namespace
    if spec.storageConfig is None:
        return
    refs = {
        "slurmKeyRef": spec.slurmKeyRef,
        "jwtKeyRef": spec.jwt_ref,
        "storageConfig.passwordKeyRef": spec.storageConfig.passwordKeyRef,
    }
    for field, ref in refs.items():
        yield from references.missing_key(caches, namespace, ref, field)
    if spec.jwksKeyRef is not None:
        yield from references.missing_configmaps(caches, namespace, [spec.jwksKeyRef.name])


def _password(caches: Caches, accounting: Accounting) -> str | None:
    storage = accounting.spec.storageConfig
    ref = storage.passwordKeyRef if storage else None
    return password_of(references.key_bytes(references.secret(caches, accounting.namespace, ref), ref) or b"")


async def _recent_log(kube: Kube, pod: Pod | None) -> str:
    container = pod.container_status(names.SLURMDBD) if pod else None
    if pod is None or container is None or container.state.running is None:
        return ""
    return await logs.recent(kube, Key(*pod.key), names.SLURMDBD, seconds=RECENT_SECONDS)


async def _startup_log(kube: Kube, pod: Pod | None) -> str | None:
    """The log of a slurmdbd that has not been ready yet: a conversion is told nowhere else."""
    container = pod.container_status(names.SLURMDBD) if pod else None
    if pod is None or container is None or container.state.running is None:
        return ""
    # It listens only after the conversion, and the kubelet remembers that its startup probe has succeeded. The pods
    # of another operator may have no such probe, and count as started at once.
    ours = names.RESTART_HASH in pod.metadata.annotations
    if pod.ready or (ours and container.started):
        return ""
    return await logs.first_and_last(kube, Key(*pod.key), names.SLURMDBD)


async def _wrong_settings(kube: Kube, pod: Pod | None, memory: Memory) -> tuple[str, ...]:
    container = pod.container_status(names.SLURMDBD) if pod and pod.ready else None
    if pod is None or container is None:
        return ()
    if memory.container != container.containerID:
        log = await logs.beginning(kube, Key(*pod.key), names.SLURMDBD)
        if log is None:
            return ()
        memory.container, memory.wrong_settings = container.containerID, wrong_settings(log)
    return memory.wrong_settings
