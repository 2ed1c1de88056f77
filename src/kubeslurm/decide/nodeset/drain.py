"""Why a worker must take no new jobs, and how Slurm is told."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.duration import parse_duration
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.decide.nodeset.rollout import UPDATE
from kubeslurm.decide.nodeset.scale import SCALE_IN
from kubeslurm.slurm.rest.models import REASON_PREFIX, Node, NodeUpdate

DELETION = "deletion"
PLACEMENT = "placement"
NODE = "node"
USER = ""
CORDON = "Cordon"  # value of the annotation on a Kubernetes node whose cordon mirrors a drain in Slurm

REASON_LIMIT = 256
# Kubernetes' own taints say what the kubelet or a controller thinks of the node. A kubelet that is away for a minute is
# no reason to drain: slurmd lives on. `--propagated-node-conditions` is how an admin asks for it.
OWN_TAINTS = "node.kubernetes.io/"
# Reasons that slurmctld writes by itself; they describe the node, not somebody's will.
SLURM_REASONS = ("Not responding", "Node unexpectedly rebooted")
# How they begin when slurmctld refuses what a slurmd registers with: whole sentences, because an admin may well write
# "gres/gpu 3 dead" or "Low on coolant".
REFUSALS = re.compile(
    r"gres/\S+ count reported lower than configured"
    r"|Low socket\*core(\*thread)? count|Low RealMemory \(reported:|Low (CPUs|TmpDisk)(,|$)"
    r"|Invalid gres|Failed to set topology"
)

NO_REASON = "no reason given"

_TEXT = {
    SCALE_IN: "Pod ({pod}) is pending termination for scale-in",
    UPDATE: "Pod ({pod}) is pending termination for update",
    DELETION: "Pod ({pod}) is pending termination for deletion of its NodeSet",
    PLACEMENT: "Pod ({pod}) is pending termination because it does not belong on Node ({node})",
    USER: "Pod ({pod}) was cordoned",
}
# What the reference operator wrote when the cordon was its own; a user's own cordon reads "was cordoned" and no more.
_OPERATORS_OWN = ("pending termination", "must be cordoned")


_WAS = " (was: "


class Hold(msgspec.Struct, frozen=True):
    """A standing wish that a worker takes no new jobs; an empty cause is the user's own cordon of the pod."""

    cause: str
    reason: str


class Overdue(msgspec.Struct, frozen=True):
    """A Slurm node that has kept its jobs for longer than `patience`, in seconds from when `reason` was given."""

    node: str
    reason: str
    patience: float


def hold(
    worker: Worker,
    condemned: Mapping[str, str],
    tolerations: Sequence[Tree],
    watched: Collection[str],
    *,
    mirrored: bool = False,
) -> Hold | None:
    """The strongest reason why this worker must be drained, if there is one."""
    if cause := condemned.get(worker.name):
        node = worker.pod.spec.nodeName
        return Hold(cause, REASON_PREFIX + _TEXT[cause].format(pod=worker.key, node=node))
    host = worker.host
    if host is not None and (text := host_reason(host, worker.key, tolerations, watched, mirrored=mirrored)):
        return Hold(NODE, REASON_PREFIX + text)
    if worker.user_cordoned and not left_by_operator(worker):
        return Hold(USER, REASON_PREFIX + _TEXT[USER].format(pod=worker.key))
    return None


def host_reason(
    host: views.Node, pod: str, tolerations: Sequence[Tree], watched: Collection[str], *, mirrored: bool
) -> str:
    """Why the Kubernetes node must take no new jobs; empty when it may.

    Only while drains in Slurm are `mirrored` as cordons does anybody keep the mark of such a cordon true.
    """
    failing = [
        each
        for each in host.status.conditions
        if each.type in watched and each.status == "True" and each.type != names.SLURM_DRAIN_CONDITION
    ]
    told = "; ".join(f"({each.reason}: {each.message})" for each in failing)
    taint = next((each for each in host.spec.taints if _repels(each, tolerations)), None)
    # A cordon that mirrors a drain in Slurm says nothing new to Slurm, and must not outlive that drain there.
    mirror = mirrored and host.metadata.annotations.get(names.SLURM_DRAIN) == CORDON
    cordoned = host.spec.unschedulable and not mirror
    if cordoned or taint or failing:
        custom = clean(host.metadata.annotations.get(names.NODE_CORDON_REASON, "")) or clean(told)
        if custom:
            return custom
        if not cordoned and taint:
            return f"Node ({host.name}) is tainted with {taint.key}:{taint.effect}, Pod ({pod}) must be cordoned"
        return f"Node ({host.name}) was cordoned, Pod ({pod}) must be cordoned"
    return ""


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


def own(node: Node) -> bool:
    """Whether nobody but us or slurmctld itself stands behind the node's reason."""
    return node.ours or node.reason.startswith(SLURM_REASONS)


def refused(node: Node) -> bool:
    """Whether slurmctld itself, and no admin, keeps the node out of service because its slurmd has too little.

    Where an admin's reason stands, the node stays out of service until the admin says otherwise, whatever it has.
    """
    return node.invalid and (own(node) or not node.reason or bool(REFUSALS.match(node.reason)))


def foreign_reason(node: Node) -> str:
    """Why an admin or a health check gives the node no jobs; empty when only we or slurmctld stand behind it."""
    if refused(node) or not (node.drain or node.down):
        return ""
    if own(node):
        return _reason_before(node)
    return node.reason or (NO_REASON if node.drain else "")


def change(worker: Worker, held: Hold | None) -> NodeUpdate | None:
    """What Slurm must be told so that the node takes jobs when it should; nothing an admin decided is undone."""
    node = worker.node
    if node is None or worker.terminating:
        return None
    if held is not None:
        return _draining(node, held)
    # The cordon of ours on the pod proves a drain ours, even where slurmctld has replaced the reason since.
    lifted = node.drain and (node.ours or (bool(worker.cause) and own(node)))
    before = _reason_before(node)
    if lifted and before:
        return NodeUpdate(state=("UNDRAIN",), reason=before)
    if node.down:
        back = worker.ready and not node.not_responding and not node.busy and not before
        return NodeUpdate.resume() if back and (lifted or (own(node) and not node.drain)) else None
    return NodeUpdate.resume() if lifted else None


def released(worker: Worker) -> bool:
    """Whether Slurm shows no drain of ours any more, so that the cordon on the pod may be forgotten."""
    node = worker.node
    return node is None or not node.drain or not own(node)


def overdue(worker: Worker, held: Hold | None, wish: Drain | None, now: datetime) -> Overdue | None:
    """A worker that must go and has kept its jobs for longer than its owner allows; never without such a wish.

    The time runs from when Slurm was told the present cause: a drain for another cause before gave no notice.
    """
    node = worker.node
    if wish is None or wish.policy == "Wait" or not wish.deadline or node is None or held is None:
        return None
    since, notice = node.reason_changed_at.value, parse_duration(wish.deadline)
    if not (node.drain and node.reason.startswith(held.reason) and node.busy) or not since:
        return None
    late = datetime.fromtimestamp(since, UTC) + notice <= now
    return Overdue(worker.slurm_name, held.reason, notice.total_seconds()) if late else None


def _draining(node: Node, held: Hold) -> NodeUpdate | None:
    if node.drain:
        told = node.reason.startswith(held.reason)
        return NodeUpdate.drain(_keeping(held.reason, _reason_before(node))) if node.ours and not told else None
    return NodeUpdate.drain(_keeping(held.reason, "" if own(node) else node.reason))


def _keeping(reason: str, before: str) -> str:
    """Our reason, with an admin's inside it: it is put back when ours is over."""
    return f"{reason}{_WAS}{before})" if before else reason


def _reason_before(node: Node) -> str:
    _, was, before = node.reason.partition(_WAS)
    return before.removesuffix(")") if was and node.ours else ""


def _repels(taint: views.Taint, tolerations: Sequence[Tree]) -> bool:
    if taint.effect not in ("NoSchedule", "NoExecute") or taint.key.startswith(OWN_TAINTS):
        return False
    if taint.key == names.SLURM_DRAIN:
        return False  # it stems from Slurm
    return not any(tolerates(each, taint) for each in tolerations)


def left_by_operator(worker: Worker) -> bool:
    """Whether a cordon without a cause stems from the reference operator, which left none on its own cordons."""
    node = worker.node
    return (
        names.POD_CORDON_BY not in worker.pod.metadata.annotations
        and node is not None
        and node.ours
        and any(text in node.reason for text in _OPERATORS_OWN)
    )
