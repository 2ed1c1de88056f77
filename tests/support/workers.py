"""Makers of NodeSets, worker pods, nodes and the facts about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kubeslurm.api import names, views
from kubeslurm.api.meta import Condition, ObjectMeta, OwnedMeta, OwnerReference
from kubeslurm.api.slinky.controller import Controller, ControllerSpec
from kubeslurm.api.slinky.fragments import LocalObjectReference, SecretKeySelector
from kubeslurm.api.slinky.nodeset import NodeSet, NodeSetSpec, NodeSetStatus
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.slurm.rest.models import Node, Number

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
REVISION = "5f6b7"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def nodeset(*, status: NodeSetStatus | None = None, meta: dict[str, Any] | None = None, **spec: Any) -> NodeSet:
    """A NodeSet `gpu` in `slurm`, with what the test says about its spec."""
    metadata: dict[str, Any] = {"name": "gpu", "namespace": "slurm", "uid": "uid-gpu", "generation": 3} | (meta or {})
    return NodeSet(
        metadata=OwnedMeta(**metadata),
        spec=NodeSetSpec(controllerRef=LocalObjectReference(name="main"), **spec),
        status=status or NodeSetStatus(),
    )


def controller(**spec: Any) -> Controller:
    """The Controller `main` that the NodeSets belong to."""
    key = SecretKeySelector(name="slurm-auth", key="slurm.key")
    return Controller(
        metadata=OwnedMeta(name="main", namespace="slurm", uid="uid-main"),
        spec=ControllerSpec(**({"slurmKeyRef": key} | spec)),
    )


def slurmd(*, started: bool = True, container: str = "containerd://1", since: float = 600) -> views.ContainerStatus:
    if not started:
        return views.ContainerStatus(name="slurmd", state=views.ContainerState(waiting=views.Waiting(reason="Pulling")))
    running = views.Running(startedAt=ago(since))
    return views.ContainerStatus(
        name="slurmd", ready=True, started=True, containerID=container, state=views.ContainerState(running=running)
    )


def pod(
    ordinal: int,
    *,
    node: str | None = None,
    phase: str = "Running",
    ready: bool = True,
    ready_for: float = 600,
    age: float = 900,
    deleting: bool = False,
    revision: str = REVISION,
    mode: str = "StatefulSet",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    status: views.ContainerStatus | None = None,
    uid: str = "",
    hostname: str = "",
    host_network: bool = False,
) -> views.Pod:
    """The worker pod `gpu-<ordinal>`, running and ready on `host-<ordinal>` unless told otherwise."""
    conditions = (Condition(type="Ready", status="True" if ready else "False", lastTransitionTime=ago(ready_for)),)
    own = {
        names.LABEL_NAME: "slurmd",
        names.LABEL_INSTANCE: "gpu",
        names.LABEL_CLUSTER: "main",
        names.LABEL_SCALING_MODE: mode,
        names.LABEL_REVISION: revision,
        names.LABEL_POD_NAME: f"gpu-{ordinal}",
        names.LABEL_POD_HOSTNAME: hostname or f"gpu-{ordinal}",
    }
    return views.Pod(
        metadata=ObjectMeta(
            name=f"gpu-{ordinal}",
            namespace="slurm",
            uid=uid or f"uid-{ordinal}",
            creationTimestamp=ago(age),
            deletionTimestamp=NOW if deleting else None,
            labels=own | (labels or {}),
            annotations=annotations or {},
            ownerReferences=(
                OwnerReference(
                    apiVersion=names.API_VERSION, kind="NodeSet", name="gpu", uid="uid-gpu", controller=True
                ),
            ),
        ),
        spec=views.PodSpec(
            nodeName=f"host-{ordinal}" if node is None else node,
            hostname=hostname or f"gpu-{ordinal}",
            hostNetwork=host_network,
        ),
        status=views.PodStatus(phase=phase, conditions=conditions, containerStatuses=(status or slurmd(),)),
    )


def slurm_node(ordinal: int, *state: str, reason: str = "", comment: str | None = None, **fields: Any) -> Node:
    """The Slurm node `gpu-<ordinal>`, idle unless told otherwise, with the comment of its pod."""
    info = PodInfo("slurm", f"gpu-{ordinal}", f"host-{ordinal}", "gpu", "uid-gpu", f"uid-{ordinal}", "containerd://1")
    text = info.text if comment is None else comment
    return Node(name=f"gpu-{ordinal}", state=state or ("IDLE",), reason=reason, comment=text, **fields)


def host(name: str, **fields: Any) -> views.Node:
    """A Kubernetes node."""
    meta = {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    conditions = fields.pop("conditions", ())
    return views.Node(
        metadata=ObjectMeta(name=name, **meta),
        spec=views.NodeSpec(**fields),
        status=views.NodeStatus(conditions=conditions),
    )


def worker(ordinal: int, *state: str, reason: str = "", absent: bool = False, **fields: Any) -> Worker:
    """A worker whose Slurm node is in the given state."""
    on = fields.pop("host", None) or host(f"host-{ordinal}")
    node = None if absent else slurm_node(ordinal, *state, reason=reason, **fields.pop("slurm", {}))
    return Worker(pod=pod(ordinal, **fields), node=node, host=on)


def facts(*workers: Worker, known: bool = True, **fields: Any) -> Facts:
    """What a pass knows; with `known=False` Slurm does not answer."""
    shown = workers if known else tuple(Worker(pod=each.pod, host=each.host) for each in workers)
    given: dict[str, Any] = {"revision": REVISION, "now": NOW, "slurm_error": "" if known else "no answer"} | fields
    return Facts(workers=shown, **given)


def drained_by_us(cause: str) -> dict[str, str]:
    return {names.POD_CORDON: "true", names.POD_CORDON_BY: cause}


def at(moment: datetime) -> Number:
    return Number(set=True, number=moment.timestamp())
