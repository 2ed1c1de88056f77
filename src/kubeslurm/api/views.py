"""Lean views of Kubernetes' own kinds: only what the operator reads.

There may be ten thousand pods and nodes, so their views are small; the few objects that we write keep their whole spec,
so that an edit by somebody else is noticed.
"""

from datetime import datetime
from typing import Any

from msgspec import field

from kubeslurm.api.meta import Condition, OwnedMeta, Tree, Wire
from kubeslurm.api.pod import (
    ClaimSource,
    ContainerState,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    Running,
    Terminated,
    Volume,
    Waiting,
)
from kubeslurm.api.resource import Resource

__all__ = [
    "ClaimSource",
    "ConfigMap",
    "ContainerState",
    "ContainerStatus",
    "ControllerRevision",
    "Deployment",
    "Lease",
    "Node",
    "Other",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodSpec",
    "PodStatus",
    "Running",
    "Secret",
    "Service",
    "StatefulSet",
    "Terminated",
    "Volume",
    "Waiting",
]


class Taint(Wire, frozen=True, kw_only=True):
    """Keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True, kw_only=True):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire, frozen=True, kw_only=True):
    """The state that a node reports."""

    conditions: tuple[Condition, ...] = ()


class Node(Resource, frozen=True, kw_only=True):
    """A Kubernetes node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


class Child(Resource, frozen=True, kw_only=True):
    """An object that we write ourselves; there are few, so they are kept whole."""

    metadata: OwnedMeta


class Service(Child, frozen=True, kw_only=True):
    """A Service."""

    spec: Tree = field(default_factory=dict)
    status: Tree = field(default_factory=dict)


class ConfigMap(Child, frozen=True, kw_only=True):
    """A ConfigMap."""

    data: dict[str, str] = field(default_factory=dict)
    binaryData: dict[str, str] = field(default_factory=dict)
    immutable: bool = False


class Secret(Child, frozen=True, kw_only=True):
    """A Secret; values are base64 text, as on the wire."""

    data: dict[str, str] = field(default_factory=dict)
    type: str = ""
    immutable: bool = False


class DeploymentStatus(Wire, frozen=True, kw_only=True):
    """The state of a Deployment."""

    replicas: int = 0
    readyReplicas: int = 0


class Deployment(Child, frozen=True, kw_only=True):
    """A Deployment."""

    spec: Tree = field(default_factory=dict)
    status: DeploymentStatus = DeploymentStatus()


class StatefulSet(Child, frozen=True, kw_only=True):
    """A StatefulSet."""

    spec: Tree = field(default_factory=dict)


class PodDisruptionBudget(Child, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    spec: Tree = field(default_factory=dict)
    status: Tree = field(default_factory=dict)


class PersistentVolumeClaim(Resource, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    spec: Tree = field(default_factory=dict)


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """Who leads, and until when."""

    holderIdentity: str = ""
    leaseDurationSeconds: int = 0
    renewTime: datetime | None = None


class Lease(Resource, frozen=True, kw_only=True):
    """A Lease, for leader election."""

    spec: LeaseSpec = LeaseSpec()


class ControllerRevision(Resource, frozen=True, kw_only=True):
    """A revision of a NodeSet's template."""

    data: Any = None
    revision: int = 0


class Other(Resource, frozen=True, kw_only=True):
    """An object of which only the metadata is read."""
