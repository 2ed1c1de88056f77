"""What a Controller rests on, read from the stores in one go."""

from collections.abc import Mapping

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING, POD
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import Pod, Secret
from kubeslurm.build.common import digest
from kubeslurm.build.controller import config
from kubeslurm.control import references
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.report.conditions import Finding, degraded
from kubeslurm.report.reasons import Reason
from kubeslurm.slurm import conf


class Observed(msgspec.Struct, frozen=True):
    """The facts of one pass; without `sources` the configuration cannot be written, and `missing` says why."""

    sources: config.Sources | None
    key_hashes: Mapping[str, str]  # annotation -> hash
    missing: tuple[Finding, ...]
    pod: Pod | None
    nodesets: int
    restapis: int

    @property
    def accounting_awaited(self) -> str:
        """The Accounting that is not ready yet; slurmctld registers its cluster there when it first starts."""
        accounting = self.sources.accounting if self.sources else None
        if accounting is None or accounting.spec.external:
            return ""
        ready = any(each.type == "Ready" and each.status == "True" for each in accounting.status.conditions)
        return "" if ready else accounting.name


def observe(caches: Caches, controller: Controller, live: str) -> Observed:
    """Reads everything a pass goes by; `live` is the slurm.conf that is mounted now."""
    key, spec = Key(*controller.key), controller.spec
    slurm_key = references.secret(caches, controller.namespace, spec.slurmKeyRef)
    jwt_key = references.secret(caches, controller.namespace, spec.jwt_ref)
    missing = (
        *_missing_keys(controller, slurm_key, jwt_key),
        *_missing_files(caches, controller),
        *_missing_accounting(caches, controller),
    )
    nodesets = references.nodesets(caches, key)
    return Observed(
        sources=None if missing or controller.deleting else _sources(caches, controller, nodesets, live),
        key_hashes={
            names.SLURM_KEY_HASH: digest.of_values(references.data_of(slurm_key)),
            names.JWT_KEY_HASH: digest.of_values(references.data_of(jwt_key)),
        },
        missing=missing,
        pod=caches.store(POD).get(Key(controller.namespace, names.controller_pod(controller.name))),
        nodesets=len(nodesets),
        restapis=len(references.restapis(caches, key)),
    )


def restart_hash(files: Mapping[str, str]) -> str:
    """Changes when something changes that slurmctld takes only at its start."""
    return digest.of_files(conf.at_start(files))


def _sources(caches: Caches, controller: Controller, nodesets: tuple[NodeSet, ...], live: str) -> config.Sources:
    found = {name: references.configmap(caches, controller.namespace, name) for name in config.referenced(controller)}
    current = conf.values(conf.parse(live)).get("maxnodecount", "")
    needed = sum(max(nodeset.spec.replicas or 0, nodeset.status.desired) for nodeset in nodesets)
    return config.Sources(
        controller=controller,
        nodesets=nodesets,
        accounting=_accounting(caches, controller),
        configmaps={name: configmap for name, configmap in found.items() if configmap is not None},
        max_node_count=conf.max_node_count(needed, int(current) if current.isdigit() else 0),
    )


def _accounting(caches: Caches, controller: Controller) -> Accounting | None:
    ref = controller.spec.accountingRef
    return caches.store(ACCOUNTING).get(Key(controller.namespace, ref.name)) if ref and ref.name else None


def _missing_keys(controller: Controller, slurm_key: Secret | None, jwt_key: Secret | None) -> list[Finding]:
    spec = controller.spec
    refs = (("slurmKeyRef", spec.slurmKeyRef, slurm_key), ("jwtKeyRef", spec.jwt_ref, jwt_key))
    return [
        degraded(Reason.SECRET_KEY_NOT_FOUND, references.missing_key(controller.namespace, ref, field))
        for field, ref, found in refs
        if references.key_bytes(found, ref) is None and not (spec.external and ref is None)
    ]


def _missing_files(caches: Caches, controller: Controller) -> list[Finding]:
    if controller.spec.external:
        return []
    return [
        degraded(
            Reason.CONFIG_MAP_NOT_FOUND,
            f"ConfigMap {controller.namespace}/{name} is missing: create it, or remove the reference to it",
        )
        for name in config.referenced(controller)
        if references.configmap(caches, controller.namespace, name) is None
    ]


def _missing_accounting(caches: Caches, controller: Controller) -> list[Finding]:
    """Without it slurmctld would come up with no accounting at all, and lose what it should have recorded."""
    ref = controller.spec.accountingRef
    if ref is None or not ref.name or _accounting(caches, controller) is not None:
        return []
    name = f"{controller.namespace}/{ref.name}"
    return [
        degraded(Reason.ACCOUNTING_NOT_FOUND, f"Accounting {name} does not exist: create it, or remove accountingRef")
    ]
