"""Why a worker is drained, what Slurm is told, and whose decisions stay untouched."""

from datetime import timedelta
from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Condition
from kubeslurm.api.slinky.nodeset import Drain
from kubeslurm.api.views import Taint
from kubeslurm.decide.nodeset.drain import Hold, Overdue, change, clean, hold, host_reason, overdue, refused, released
from kubeslurm.decide.nodeset.facts import Worker
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.workers import NOW, at, drained_by_us, host, slurm_node, worker

OURS = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"
CORDONED = "slurm-operator: Node (host-1) was cordoned, Pod (slurm/gpu-1) must be cordoned"
SCALE_IN = Hold("scale-in", OURS)
GPU_TAINT = Taint(key="gpu", value="broken", effect="NoSchedule")


def held(each: Worker, condemned: dict[str, str] | None = None, **more: Any) -> Hold | None:
    return hold(each, condemned or {}, more.get("tolerations", ()), more.get("watched", ()))


def test_a_healthy_worker_is_not_held() -> None:
    assert held(worker(1)) is None


def test_a_condemned_worker_is_held_with_the_cause() -> None:
    assert held(worker(1), {"gpu-1": "scale-in"}) == SCALE_IN


def test_a_cordoned_node_holds_its_worker() -> None:
    assert held(worker(1, host=host("host-1", unschedulable=True))) == Hold("node", CORDONED)


def test_the_reason_an_admin_wrote_on_the_node_is_passed_on() -> None:
    on = host("host-1", unschedulable=True, annotations={names.NODE_CORDON_REASON: " bad\tfan\n\x07"})
    assert held(worker(1, host=on)) == Hold("node", "slurm-operator: bad fan")


def test_watched_node_conditions_hold_and_explain() -> None:
    bad = Condition(type="GpuFault", status="True", reason="Xid79", message="fell off the bus")
    on = host("host-1", conditions=(bad, Condition(type="Other", status="True", reason="X")))
    found = held(worker(1, host=on), watched={"GpuFault"})
    assert found == Hold("node", "slurm-operator: (Xid79: fell off the bus)")
    assert held(worker(1, host=on)) is None


def test_a_taint_that_the_worker_does_not_tolerate_holds_it() -> None:
    each = worker(1, host=host("host-1", taints=(GPU_TAINT,)))
    found = held(each)
    assert found is not None
    assert (
        found.reason
        == "slurm-operator: Node (host-1) is tainted with gpu:NoSchedule, Pod (slurm/gpu-1) must be cordoned"
    )
    assert held(each, tolerations=[{"key": "gpu", "operator": "Exists"}]) is None


@pytest.mark.parametrize("key", ["not-ready", "unreachable", "memory-pressure", "unschedulable"])
def test_a_kubelet_that_is_away_is_no_reason_to_drain(key: str) -> None:
    taints = (Taint(key=f"node.kubernetes.io/{key}", effect="NoSchedule"),)
    assert host_reason(host("host-1", taints=taints), "slurm/gpu-1", (), (), mirrored=False) == ""


def test_a_users_own_cordon_of_the_pod_holds_until_the_user_lifts_it() -> None:
    each = worker(1, annotations={names.POD_CORDON: "true"})
    assert held(each) == Hold("", "slurm-operator: Pod (slurm/gpu-1) was cordoned")


def test_a_users_cordon_outlives_one_of_ours() -> None:
    each = worker(1, annotations={names.POD_CORDON: "true", names.POD_CORDON_BY: "scale-in+user"})
    assert each.cause == "scale-in"
    assert held(each) == Hold("", "slurm-operator: Pod (slurm/gpu-1) was cordoned")


def test_a_cordon_that_the_reference_operator_left_is_not_taken_for_a_users() -> None:
    assert held(worker(1, "IDLE", "DRAIN", reason=OURS, annotations={names.POD_CORDON: "true"})) is None


def test_long_reasons_are_cut() -> None:
    assert len(clean("x" * 1000)) == 256


ADMIN = "replacing the fan"

CHANGES: dict[str, tuple[Worker, Hold | None, NodeUpdate | None]] = {
    "an idle node that is held is drained": (worker(1), SCALE_IN, NodeUpdate.drain(OURS)),
    "a busy node that is held is drained": (worker(1, "MIXED"), SCALE_IN, NodeUpdate.drain(OURS)),
    "a node drained for this already is left alone": (worker(1, "IDLE", "DRAIN", reason=OURS), SCALE_IN, None),
    "a new cause of ours is shown": (worker(1, "IDLE", "DRAIN", reason=CORDONED), SCALE_IN, NodeUpdate.drain(OURS)),
    "an admin's drain keeps its reason": (worker(1, "IDLE", "DRAIN", reason=ADMIN), SCALE_IN, None),
    "an admin's reason is kept when we must drain": (
        worker(1, "DOWN", reason=ADMIN),
        SCALE_IN,
        NodeUpdate.drain(f"{OURS} (was: {ADMIN})"),
    ),
    "a reason that holds an admin's is left alone": (
        worker(1, "DOWN", "DRAIN", reason=f"{OURS} (was: {ADMIN})"),
        SCALE_IN,
        None,
    ),
    "an admin's reason is put back, and what the admin did stays": (
        worker(1, "DOWN", "DRAIN", reason=f"{OURS} (was: {ADMIN})"),
        None,
        NodeUpdate(state=("UNDRAIN",), reason=ADMIN),
    ),
    "an admin's reason survives a change of ours": (
        worker(1, "IDLE", "DRAIN", reason=f"{CORDONED} (was: {ADMIN})"),
        SCALE_IN,
        NodeUpdate.drain(f"{OURS} (was: {ADMIN})"),
    ),
    "our drain is lifted when nothing holds": (worker(1, "IDLE", "DRAIN", reason=OURS), None, NodeUpdate.resume()),
    "our drain of a busy node is lifted": (worker(1, "MIXED", "DRAIN", reason=OURS), None, NodeUpdate.resume()),
    "an admin's drain is never lifted": (worker(1, "IDLE", "DRAIN", reason=ADMIN), None, None),
    "a drain without any reason is somebody else's": (worker(1, "IDLE", "DRAIN"), None, None),
    "an admin's down is never lifted": (worker(1, "DOWN", reason=ADMIN), None, None),
    "a node that our pod left down comes back with the next pod": (
        worker(1, "DOWN", reason="slurm-operator: Pod is terminating"),
        None,
        NodeUpdate.resume(),
    ),
    "but not where an admin had set it down": (
        worker(1, "DOWN", reason=f"slurm-operator: Pod is terminating (was: {ADMIN})"),
        None,
        None,
    ),
    "a node that slurmctld took down for a reboot comes back": (
        worker(1, "DOWN", reason="Node unexpectedly rebooted"),
        None,
        NodeUpdate.resume(),
    ),
    "a node that did not answer comes back when it answers": (
        worker(1, "DOWN", reason="Not responding"),
        None,
        NodeUpdate.resume(),
    ),
    "but not before it answers": (worker(1, "DOWN", "NOT_RESPONDING", reason="Not responding"), None, None),
    "nor before its pod is ready": (worker(1, "DOWN", reason="slurm-operator: x", ready=False), None, None),
    "nor while jobs are being cleaned up": (worker(1, "DOWN", "COMPLETING", reason="slurm-operator: x"), None, None),
    "a drained node that is down waits for its pod": (
        worker(1, "DOWN", "DRAIN", reason=OURS, ready=False),
        None,
        None,
    ),
    "our drain is recognised by the pod even when slurmctld changed the reason": (
        worker(1, "IDLE", "DRAIN", reason="Not responding", annotations=drained_by_us("node")),
        None,
        NodeUpdate.resume(),
    ),
    "without such a cordon it is not ours": (worker(1, "IDLE", "DRAIN", reason="Not responding"), None, None),
    "a terminating pod is left to its preStop hook": (worker(1, deleting=True), SCALE_IN, None),
    "an absent node cannot be told anything": (worker(1, absent=True), SCALE_IN, None),
}


@pytest.mark.parametrize(("each", "wish", "update"), CHANGES.values(), ids=CHANGES)
def test_what_slurm_is_told(each: Worker, wish: Hold | None, update: NodeUpdate | None) -> None:
    assert change(each, wish) == update


REFUSALS = {
    "gres/gpu count reported lower than configured (3 < 8)": True,
    "Low socket*core*thread count, Low CPUs": True,
    "Low socket*core count": True,
    "Low CPUs": True,
    "Low TmpDisk": True,
    "Low RealMemory (reported:24105 < 100.00% of configured:32000)": True,
    "gres/gpu 3 dead, RMA": False,
    "Low RealMemory since DIMM 4 died": False,
    "Low CPUs fan speed": False,
    "Low on coolant": False,
}


@pytest.mark.parametrize(("reason", "slurms"), REFUSALS.items(), ids=REFUSALS)
def test_only_slurms_own_sentences_count_as_a_refusal(reason: str, slurms: bool) -> None:
    assert refused(slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason=reason)) is slurms


def test_our_cordon_is_forgotten_only_when_slurm_shows_no_drain_of_ours() -> None:
    assert not released(worker(1, "IDLE", "DRAIN", reason=OURS))
    assert released(worker(1))
    assert released(worker(1, "IDLE", "DRAIN", reason=ADMIN))
    assert released(worker(1, absent=True))


def drained_since(hours: float, *state: str) -> Worker:
    return worker(1, *state, reason=OURS, slurm={"reason_changed_at": at(NOW - timedelta(hours=hours))})


def test_jobs_are_never_ended_without_a_wish() -> None:
    for wish in (None, Drain(), Drain(policy="Wait", deadline="1h")):
        assert not overdue(drained_since(99, "MIXED", "DRAIN"), SCALE_IN, wish, NOW)


def test_jobs_are_ended_after_the_deadline_that_the_owner_set() -> None:
    wish = Drain(policy="Requeue", deadline="4h")
    assert overdue(drained_since(5, "MIXED", "DRAIN"), SCALE_IN, wish, NOW) == Overdue("gpu-1", OURS, 4 * 3600)
    assert not overdue(drained_since(3, "MIXED", "DRAIN"), SCALE_IN, wish, NOW)
    assert not overdue(drained_since(5, "IDLE", "DRAIN"), SCALE_IN, wish, NOW)


def test_a_drain_for_another_cause_gives_no_notice() -> None:
    """The node was cordoned days ago; the scale-in of this minute must give its jobs the whole time."""
    wish = Drain(policy="Cancel", deadline="4h")
    cordoned = worker(1, "MIXED", "DRAIN", reason=CORDONED, slurm={"reason_changed_at": at(NOW - timedelta(days=5))})
    assert not overdue(cordoned, SCALE_IN, wish, NOW)
    assert not overdue(cordoned, None, wish, NOW)
