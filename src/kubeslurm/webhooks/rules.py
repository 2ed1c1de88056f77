"""Admission rules that the CRDs cannot express: they need the namespace, or other objects. Pure.

A rule never refuses because of a field that has not changed, so that the rest of an old object can be edited.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubeslurm.api.resource import SlurmResource
from kubeslurm.api.slinky.controller import CLUSTER_NAME_LIMIT, Controller
from kubeslurm.api.slinky.fragments import ServiceSpec
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap, PersistentVolumeClaim
from kubeslurm.webhooks.review import ALLOWED, Decision

GENERATED_FILES = ("slurm.conf", "slurmdbd.conf")
KNOWN_FILES = frozenset(
    {
        "acct_gather.conf",
        "burst_buffer.conf",
        "cgroup.conf",
        "cli_filter.lua",
        "gres.conf",
        "helpers.conf",
        "job_container.conf",
        "job_submit.lua",
        "mpi.conf",
        "namespace.yaml",
        "oci.conf",
        "plugstack.conf",
        "topology.conf",
        "topology.yaml",
    }
)


class Facts(msgspec.Struct, frozen=True):
    """Other objects that the rules need; a ConfigMap that does not exist maps to None."""

    config_maps: Mapping[str, ConfigMap | None] = {}
    claim: PersistentVolumeClaim | None = None
    nodesets: tuple[NodeSet, ...] = ()
    unchecked: tuple[str, ...] = ()


def validate(new: SlurmResource, old: SlurmResource | None, facts: Facts) -> Decision:
    """Whether the object may be stored. One that is being deleted, or whose spec does not change, always may."""
    if new.deleting or (old is not None and _spec(old) == _spec(new)):
        return ALLOWED
    errors: list[str] = []
    warnings = [*_service_warnings(_spec(new)), *facts.unchecked]
    if isinstance(new, Controller):
        before = old if isinstance(old, Controller) else None
        errors += [*_cluster_name(new, before), *_shared_state(new, facts)]
        file_errors, file_warnings = _files(new, before, facts)
        errors += file_errors
        warnings += file_warnings
    if isinstance(new, NodeSet):
        warnings += _same_name(new, facts)
    return Decision(tuple(errors), tuple(warnings))


def _spec(obj: SlurmResource) -> Any:
    return getattr(obj, "spec", None)


def _cluster_name(new: Controller, old: Controller | None) -> Iterator[str]:
    if old is not None and new.cluster_name != old.cluster_name:
        yield (
            f"the cluster is called {old.cluster_name} and cannot be renamed to {new.cluster_name}: "
            "its state and accounting are kept under that name; make a new Controller instead"
        )
    if old is None and len(new.cluster_name) > CLUSTER_NAME_LIMIT:
        yield (
            f"the cluster name {new.cluster_name} has {len(new.cluster_name)} characters, "
            f"Slurm takes {CLUSTER_NAME_LIMIT}: set spec.clusterName to a shorter one"
        )


def _shared_state(new: Controller, facts: Facts) -> Iterator[str]:
    if not (new.spec.ha and new.spec.ha.enabled) or facts.claim is None:
        return
    modes = facts.claim.spec.get("accessModes") or ()
    if "ReadWriteMany" not in modes:
        yield (
            f"spec.ha needs a volume that all slurmctlds share, but the claim {facts.claim.name} has the access modes "
            f"{', '.join(modes) or '(none)'}: use a claim with ReadWriteMany"
        )


def _files(new: Controller, old: Controller | None, facts: Facts) -> tuple[list[str], list[str]]:
    errors: list[str] = []
    warnings: list[str] = []
    known_before = {ref.name for ref in (old.spec.configFileRefs or ())} if old else set()
    for ref in new.spec.configFileRefs or ():
        if ref.name not in facts.config_maps:
            continue
        found = facts.config_maps[ref.name]
        if found is None:
            missing = (
                f"spec.configFileRefs names the ConfigMap {ref.name}, which is not in the namespace {new.namespace}"
            )
            if ref.name in known_before:
                warnings.append(f"{missing}: create it, or remove the reference")
            else:
                errors.append(f"{missing}: create it first")
            continue
        keys = sorted({*found.data, *found.binaryData})
        errors += [
            f"the ConfigMap {ref.name} holds {key}, which the operator writes itself: use spec.extraConf instead"
            for key in keys
            if key in GENERATED_FILES
        ]
        warnings += [
            f"the ConfigMap {ref.name} holds {key}, which is no file that Slurm reads by that name"
            for key in keys
            if key not in GENERATED_FILES and key not in KNOWN_FILES
        ]
    return errors, warnings


def _service_warnings(spec: Any) -> Iterator[str]:
    service = getattr(spec, "service", None)
    if isinstance(service, ServiceSpec) and (service.spec or {}).get("externalIPs"):
        yield "spec.service.spec.externalIPs is not used: choose a Service of type LoadBalancer or NodePort"


def _same_name(new: NodeSet, facts: Facts) -> Iterator[str]:
    for other in facts.nodesets:
        if other.name != new.name and other.controller_key == new.controller_key and other.slurm_name == new.slurm_name:
            yield (
                f"the NodeSet {other.name} of the same cluster is called {new.slurm_name} in Slurm too: "
                "give spec.template.spec.hostname another prefix"
            )
