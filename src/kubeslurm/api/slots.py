"""A worker's place in its NodeSet, and the names that follow from it."""

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.slinky.nodeset import NodeSet


class Slot(msgspec.Struct, frozen=True):
    """A place for one worker: an ordinal, or a Kubernetes node; an ordinal may be pinned to a node."""

    ordinal: int | None = None
    node: str = ""
    hostname: str = ""


def ordinal_text(nodeset: NodeSet, ordinal: int) -> str:
    return str(ordinal).zfill(nodeset.spec.ordinalPadding)


def for_ordinal(nodeset: NodeSet, ordinal: int, node: str = "") -> Slot:
    """The worker with this ordinal; `node` pins it."""
    text = ordinal_text(nodeset, ordinal)
    prefix = nodeset.hostname_prefix
    return Slot(ordinal=ordinal, node=node, hostname=f"{prefix}{text}" if prefix else f"{nodeset.name}-{text}")


def for_node(host: views.Node) -> Slot:
    """The worker of one Kubernetes node in DaemonSet mode."""
    return Slot(node=host.name, hostname=daemon_hostname(host))


def daemon_hostname(host: views.Node) -> str:
    """The Slurm name of the worker on a Kubernetes node: what its annotation says, or its short name."""
    return host.metadata.annotations.get(names.HOSTNAME_OVERRIDE) or host.name.partition(".")[0]


def pod_name(nodeset: NodeSet, slot: Slot) -> str:
    """The pod's name; empty in DaemonSet mode, where the API server generates one."""
    return "" if slot.ordinal is None else f"{nodeset.name}-{ordinal_text(nodeset, slot.ordinal)}"


def claim_name(nodeset: NodeSet, template: str, slot: Slot) -> str:
    suffix = slot.hostname if slot.ordinal is None else ordinal_text(nodeset, slot.ordinal)
    return f"{template}-{nodeset.name}-{suffix}"


def uses_host_network(nodeset: NodeSet) -> bool:
    template = nodeset.spec.template
    return bool(template and template.spec and template.spec.get("hostNetwork"))


def shares_processes(nodeset: NodeSet) -> bool:
    """Whether processes of a worker may outlive the container that started them."""
    spec = (nodeset.spec.template and nodeset.spec.template.spec) or {}
    return bool(spec.get("hostPID") or spec.get("shareProcessNamespace"))


def slurm_name(nodeset: NodeSet, slot: Slot) -> str:
    """The Slurm node that the worker will be; empty where only the scheduler can tell."""
    if slot.ordinal is not None and uses_host_network(nodeset):
        return slot.node
    return slot.hostname
