"""Why a worker is drained, what is written to Slurm, and whose decisions stay untouched."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import Condition
from kubeslurm.api.views import Taint
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.slurm.drain import DrainReason, HostRules, clean, drain_reason, host_reason, state_update
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.workers import drained_by_us, host, worker

OURS = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"
CORDONED = "slurm-operator: Node (host-1) was cordoned, Pod (slurm/gpu-1) must be cordoned"
SCALE_IN = DrainReason(Cause.SCALE_IN, OURS)
FAULTY = (
    Condition(type="Ready", status="True", reason="KubeletReady"),
    Condition(type="GpuFault", status="True", reason="Xid79", message="fell off the bus"),
    Condition(type="Other", status="True", reason="X"),
)
GPU_TAINT = Taint(key="gpu", value="broken", effect="NoSchedule")


def reason_of(each: Worker, leaving: dict[str, Cause] | None = None, **rules: Any) -> DrainReason | None:
    return drain_reason(each, leaving or {}, HostRules(**rules))


def test_a_healthy_worker_is_not_reason_of() -> None:
    assert reason_of(worker(1)) is None


def test_a_leaving_worker_is_drained_with_the_cause() -> None:
    assert reason_of(worker(1), {"gpu-1": Cause.SCALE_IN}) == SCALE_IN


def test_a_cordoned_node_drains_its_worker() -> None:
    assert reason_of(worker(1, host=host("host-1", unschedulable=True))) == DrainReason(Cause.NODE, CORDONED)


def test_the_reason_an_admin_wrote_on_the_node_is_passed_on() -> None:
    on = host("host-1", unschedulable=True, annotations={names.NODE_CORDON_REASON: " bad\tfan\n\x07"})
    assert reason_of(worker(1, host=on)) == DrainReason(Cause.NODE, "slurm-operator: bad fan")


def test_propagated_node_conditions_explain_a_cordon_and_drain_nothing() -> None:
    each = worker(1, host=host("host-1", conditions=FAULTY))
    assert reason_of(each, conditions={"GpuFault", "Ready"}) is None
    cordoned = worker(1, host=host("host-1", unschedulable=True, conditions=FAULTY))
    found = reason_of(cordoned, conditions={"GpuFault"})
    assert found == DrainReason(Cause.NODE, "slurm-operator: (Xid79: fell off the bus)")
    assert reason_of(cordoned) == DrainReason(Cause.NODE, CORDONED)


def test_chosen_node_conditions_drain_and_explain() -> None:
    each = worker(1, host=host("host-1", conditions=FAULTY))
    found = reason_of(each, draining_conditions={"GpuFault"})
    assert found == DrainReason(Cause.NODE, "slurm-operator: (Xid79: fell off the bus)")
    assert reason_of(each, draining_conditions={"DiskFault"}) is None


def test_a_taint_that_the_worker_does_not_tolerate_drains_it_only_on_request() -> None:
    each = worker(1, host=host("host-1", taints=(GPU_TAINT,)))
    assert reason_of(each) is None
    found = reason_of(each, taints_drain=True)
    assert found is not None
    assert (
        found.text == "slurm-operator: Node (host-1) is tainted with gpu:NoSchedule, Pod (slurm/gpu-1) must be cordoned"
    )
    assert reason_of(each, taints_drain=True, tolerations=[{"key": "gpu", "operator": "Exists"}]) is None


@pytest.mark.parametrize("key", ["not-ready", "unreachable", "memory-pressure", "unschedulable"])
def test_a_kubelet_that_is_away_is_no_reason_to_drain(key: str) -> None:
    taints = (Taint(key=f"node.kubernetes.io/{key}", effect="NoSchedule"),)
    assert host_reason(host("host-1", taints=taints), "slurm/gpu-1", HostRules(taints_drain=True)) == ""


def test_a_users_own_cordon_of_the_pod_drains_until_the_user_lifts_it() -> None:
    each = worker(1, annotations={names.POD_CORDON: "true"})
    assert reason_of(each) == DrainReason(Cause.USER, "slurm-operator: Pod (slurm/gpu-1) was cordoned")


def test_a_users_cordon_outlives_one_of_ours() -> None:
    each = worker(1, annotations={names.POD_CORDON: "true", names.POD_CORDON_BY: "scale-in+user"})
    assert each.cause == "scale-in"
    assert reason_of(each) == DrainReason(Cause.USER, "slurm-operator: Pod (slurm/gpu-1) was cordoned")


def test_a_cordon_that_the_reference_operator_left_is_not_taken_for_a_users() -> None:
    assert reason_of(worker(1, "IDLE", "DRAIN", reason=OURS, annotations={names.POD_CORDON: "true"})) is None


def test_long_reasons_are_cut() -> None:
    assert len(clean("x" * 1000)) == 256


ADMIN = "replacing the fan"

CHANGES: dict[str, tuple[Worker, DrainReason | None, NodeUpdate | None]] = {
    "an idle node that must be drained is drained": (worker(1), SCALE_IN, NodeUpdate.drain(OURS)),
    "a busy node that must be drained is drained": (worker(1, "MIXED"), SCALE_IN, NodeUpdate.drain(OURS)),
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
    "our drain is lifted when there is no reason for it": (
        worker(1, "IDLE", "DRAIN", reason=OURS),
        None,
        NodeUpdate.resume(),
    ),
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
    "an admin's own down stays, though it begins as one of Slurm's": (
        worker(1, "DOWN", reason="Not responding to IPMI, do not use"),
        None,
        None,
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


@pytest.mark.parametrize(("each", "reason", "update"), CHANGES.values(), ids=CHANGES)
def test_what_is_written_to_slurm(each: Worker, reason: DrainReason | None, update: NodeUpdate | None) -> None:
    assert state_update(each, reason) == update
