"""Why a worker must be drained, and what is written to its Slurm node."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.meta import Tree
from kubeslurm.decide.nodeset.cordon import Cause, is_left_by_operator
from kubeslurm.decide.nodeset.slurm.reasons import is_own, keeping, reason_before
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import REASON_PREFIX, Node, NodeUpdate

CORDON = "Cordon"  # value of the annotation on a Kubernetes node whose cordon mirrors a drain in Slurm

REASON_LIMIT = 256
# Kubernetes' own taints say what the kubelet or a controller thinks of the node. A kubelet that is away for a minute is
# no reason to drain: slurmd lives on. `--drain-on-node-conditions` is how an admin asks for it.
KUBERNETES_TAINTS = "node.kubernetes.io/"

_TEXT = {
    Cause.SCALE_IN: "Pod ({pod}) is pending termination for scale-in",
    Cause.UPDATE: "Pod ({pod}) is pending termination for update",
    Cause.DELETION: "Pod ({pod}) is pending termination for deletion of its NodeSet",
    Cause.PLACEMENT: "Pod ({pod}) is pending termination because it does not belong on Node ({node})",
    Cause.USER: "Pod ({pod}) was cordoned",
}


class DrainReason(msgspec.Struct, frozen=True):
    """Why a worker must take no new jobs; `text` is the reason of its Slurm node."""

    cause: Cause
    text: str


class HostRules(msgspec.Struct, frozen=True):
    """Which states of a Kubernetes node drain its workers, besides a cordon, and which word the reason."""

    tolerations: Sequence[Tree] = ()
    taints_drain: bool = False  # those that are not tolerated
    conditions: Collection[str] = ()  # only word the reason
    draining_conditions: Collection[str] = ()
    mirrors_drains: bool = False  # only then is the annotation of a mirrored cordon kept true


def drain_reason(worker: Worker, leaving: Mapping[str, Cause], rules: HostRules) -> DrainReason | None:
    """The first reason why this worker must be drained; None when it may take jobs."""
    if cause := leaving.get(worker.name):
        node = worker.pod.spec.nodeName
        return DrainReason(cause, REASON_PREFIX + _TEXT[cause].format(pod=worker.key, node=node))
    host = worker.host
    if host is not None and (text := host_reason(host, worker.key, rules)):
        return DrainReason(Cause.NODE, REASON_PREFIX + text)
    if worker.user_cordoned and not is_left_by_operator(worker):
        return DrainReason(Cause.USER, REASON_PREFIX + _TEXT[Cause.USER].format(pod=worker.key))
    return None


def host_reason(host: views.Node, pod: str, rules: HostRules) -> str:
    """Why the Kubernetes node must take no new jobs; empty when it may."""
    failing = [
        each
        for each in host.status.conditions
        if each.type in {*rules.conditions, *rules.draining_conditions}
        and each.status == "True"
        and each.type != names.SLURM_DRAIN_CONDITION
    ]
    drains = any(each.type in rules.draining_conditions for each in failing)
    repelling = (each for each in host.spec.taints if rules.taints_drain and _repels(each, rules.tolerations))
    taint = next(repelling, None)
    # A cordon that mirrors a drain in Slurm says nothing new to Slurm, and must not outlive that drain there.
    mirror = rules.mirrors_drains and host.metadata.annotations.get(names.SLURM_DRAIN) == CORDON
    cordoned = host.spec.unschedulable and not mirror
    if not (cordoned or taint or drains):
        return ""
    described = "; ".join(f"({each.reason}: {each.message})" for each in failing)
    given = clean(host.metadata.annotations.get(names.NODE_CORDON_REASON, "")) or clean(described)
    if given:
        return given
    if not cordoned and taint:
        return f"Node ({host.name}) is tainted with {taint.key}:{taint.effect}, Pod ({pod}) must be cordoned"
    return f"Node ({host.name}) was cordoned, Pod ({pod}) must be cordoned"


def clean(text: str) -> str:
    """A reason on one line, without control characters, of bounded length."""
    spaced = "".join(" " if each in "\t\r\n" else each for each in text)
    return "".join(each for each in spaced if each.isprintable()).strip()[:REASON_LIMIT].strip()


def tolerates(toleration: Tree, taint: views.Taint) -> bool:
    """Kubernetes' rule: an empty effect or key in the toleration matches all."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("key") not in (None, "", taint.key):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.value


def state_update(worker: Worker, reason: DrainReason | None) -> NodeUpdate | None:
    """The change that lets the node take jobs when it should; nothing that an admin decided is undone."""
    node = worker.node
    if node is None or worker.terminating:
        return None
    if reason is not None:
        return _drain(node, reason)
    # The cordon of ours on the pod proves a drain ours, even where slurmctld has replaced the reason since.
    lifted = node.drain and (node.ours or (bool(worker.cause) and is_own(node)))
    before = reason_before(node)
    if lifted and before:
        return NodeUpdate(state=("UNDRAIN",), reason=before)
    if node.down:
        back = worker.ready and not node.not_responding and not node.busy and not before
        return NodeUpdate.resume() if back and (lifted or (is_own(node) and not node.drain)) else None
    return NodeUpdate.resume() if lifted else None


def _drain(node: Node, reason: DrainReason) -> NodeUpdate | None:
    if node.drain:
        current = node.reason.startswith(reason.text)
        return NodeUpdate.drain(keeping(reason.text, reason_before(node))) if node.ours and not current else None
    return NodeUpdate.drain(keeping(reason.text, "" if is_own(node) else node.reason))


def _repels(taint: views.Taint, tolerations: Sequence[Tree]) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute") or taint.key.startswith(KUBERNETES_TAINTS):
        return False
    if taint.key == names.SLURM_DRAIN:
        return False  # it stems from Slurm
    return not any(tolerates(each, taint) for each in tolerations)
