"""The whole policy: what a pass does, and what it leaves alone."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import WorkerTemplate
from kubeslurm.api.slinky.strategy import UpdateStrategy
from kubeslurm.api.slots import Slot
from kubeslurm.decide.nodeset.facts import PodInfo, Seen, Worker
from kubeslurm.decide.nodeset.plan import Plan, Policy, decide
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.workers import NOW, drained_by_us, host, nodeset, seen, slurm_node, slurmd, worker

LOW = "Low RealMemory (reported:24105 < 100.00% of configured:32000)"
DRAINED = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"


def plan(view: Seen, *, policy: Policy | None = None, **spec: Any) -> Plan:
    return decide(nodeset(**spec), view, policy or Policy())


def removed(found: Plan) -> list[str]:
    return [each.name for each in found.remove]


def test_an_empty_nodeset_creates_its_workers() -> None:
    assert plan(seen(), replicas=2).create == (Slot(0, hostname="gpu-0"), Slot(1, hostname="gpu-1"))


def test_a_nodeset_that_is_as_wanted_does_nothing() -> None:
    found = plan(seen(worker(0), worker(1)), replicas=2)
    assert found == Plan(desired=2)
    assert not found.is_waiting


def test_an_idle_surplus_worker_is_drained_and_offered_to_the_gate() -> None:
    found = plan(seen(worker(0), worker(1)), replicas=1)
    assert found.condemned == {"gpu-1": "scale-in"}
    assert found.changes == {"gpu-1": NodeUpdate.drain(DRAINED)}
    assert removed(found) == ["gpu-1"]


@pytest.mark.parametrize("state", [("MIXED",), ("ALLOCATED",), ("IDLE", "COMPLETING"), ("MIXED", "DRAIN")])
def test_a_busy_surplus_worker_is_drained_and_not_offered(state: tuple[str, ...]) -> None:
    found = plan(seen(worker(1, *state)), replicas=0)
    assert removed(found) == []
    assert found.holds["gpu-1"].cause == "scale-in"


BLIND = {
    "scale-in": {"replicas": 0},
    "deletion": {"replicas": 2, "meta": {"deletionTimestamp": NOW}},
}


@pytest.mark.parametrize("spec", BLIND.values(), ids=BLIND)
@pytest.mark.parametrize("state", [("IDLE",), ("MIXED",), ("IDLE", "DRAIN")])
def test_nothing_is_removed_or_told_while_slurm_does_not_answer(spec: dict[str, Any], state: tuple[str, ...]) -> None:
    found = plan(seen(worker(0, *state), worker(1, *state), known=False), **spec)
    assert removed(found) == []
    assert found.changes == {}
    assert found.restart == ()
    assert set(found.holds) == {"gpu-0", "gpu-1"}


def test_an_update_removes_nothing_while_slurm_does_not_answer() -> None:
    found = plan(seen(worker(0, revision="old"), known=False), replicas=1)
    assert found.condemned == {"gpu-0": "update"}
    assert removed(found) == []


def test_new_workers_are_created_even_while_slurm_does_not_answer() -> None:
    assert len(plan(seen(worker(0), known=False), replicas=3).create) == 2


def test_a_worker_that_slurm_does_not_list_is_not_offered_before_several_lists_agree() -> None:
    view = seen(worker(0, absent=True))
    assert removed(plan(view, replicas=0)) == []
    assert removed(plan(view, policy=Policy(absences={"gpu-0": 2}), replicas=0)) == []
    assert removed(plan(view, policy=Policy(absences={"gpu-0": 3}), replicas=0)) == ["gpu-0"]


@pytest.mark.parametrize(
    "fields", [{"status": slurmd(started=False)}, {"node": ""}], ids=["never started", "never scheduled"]
)
def test_a_surplus_worker_without_a_slurmd_needs_no_slurm(fields: dict[str, Any]) -> None:
    view = seen(worker(0, phase="Pending", ready=False, absent=True, **fields), known=False)
    assert removed(plan(view, replicas=0)) == ["gpu-0"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_is_replaced(phase: str) -> None:
    found = plan(seen(worker(0, phase=phase, ready=False)), replicas=1)
    assert removed(found) == ["gpu-0"]
    assert found.condemned == {}


def test_a_slot_whose_worker_keeps_failing_rests() -> None:
    resting = Policy(resting={"gpu-0"})
    assert removed(plan(seen(worker(0, phase="Failed", ready=False)), policy=resting, replicas=1)) == []
    assert plan(seen(), policy=resting, replicas=1).create == ()


def test_scaling_back_out_lifts_our_own_drain() -> None:
    back = worker(1, "MIXED", "DRAIN", reason=DRAINED, annotations=drained_by_us("scale-in"))
    found = plan(seen(worker(0), back), replicas=2)
    assert found.condemned == {}
    assert found.changes == {"gpu-1": NodeUpdate.resume()}


def test_scaling_elsewhere_does_not_lift_the_drain_of_a_rolling_update() -> None:
    """Creating or removing other workers must not let new jobs onto a node that drains for an update."""
    updating = worker(
        0, "MIXED", "DRAIN", reason="slurm-operator: x", revision="old", annotations=drained_by_us("update")
    )
    found = plan(seen(updating, worker(1)), replicas=4)
    assert found.condemned == {"gpu-0": "update"}
    assert found.changes["gpu-0"].state == ("DRAIN",)


def test_deleting_a_nodeset_drains_every_worker_first() -> None:
    found = plan(seen(worker(0, "MIXED"), worker(1)), replicas=2, meta={"deletionTimestamp": NOW})
    assert found.condemned == {"gpu-0": "deletion", "gpu-1": "deletion"}
    assert found.create == ()
    assert removed(found) == ["gpu-1"]
    assert set(found.changes) == {"gpu-0", "gpu-1"}


def test_pods_of_the_other_mode_are_drained_away() -> None:
    found = plan(seen(worker(0, "MIXED", mode="DaemonSet")), replicas=1)
    assert found.condemned == {"gpu-0": "placement"}
    assert removed(found) == []


def test_an_uncordoned_node_gets_its_worker_back() -> None:
    reason = "slurm-operator: Node (host-0) was cordoned, Pod (slurm/gpu-0) must be cordoned"
    found = plan(seen(worker(0, "IDLE", "DRAIN", reason=reason, annotations=drained_by_us("node"))), replicas=1)
    assert found.changes == {"gpu-0": NodeUpdate.resume()}


def test_a_cordoned_node_drains_its_worker_and_removes_nothing() -> None:
    found = plan(seen(worker(0, host=host("host-0", unschedulable=True))), replicas=1)
    assert found.changes["gpu-0"].state == ("DRAIN",)
    assert removed(found) == []
    assert found.condemned == {}


def test_a_cordon_that_mirrors_a_drain_is_told_to_slurm_only_when_nobody_mirrors() -> None:
    mark = {names.SLURM_DRAIN: "Cordon"}
    view = seen(worker(0, host=host("host-0", unschedulable=True, annotations=mark)))
    assert plan(view, policy=Policy(mirrored=True), replicas=1).changes == {}
    assert plan(view, policy=Policy(mirrored=False), replicas=1).changes["gpu-0"].state == ("DRAIN",)


def test_updates_by_hand_wait_for_the_user() -> None:
    found = plan(seen(worker(0, revision="old")), replicas=1, updateStrategy=UpdateStrategy(type="OnDelete"))
    assert found.condemned == {}


def test_the_record_of_a_worker_that_is_gone_is_deleted() -> None:
    ghost = slurm_node(5, "DOWN", reason="slurm-operator: Pod is terminating")
    assert plan(seen(worker(0), records=(ghost,)), replicas=1).records.delete == ("gpu-5",)


@pytest.mark.parametrize("policy", [Policy(), Policy(resting={"gpu-0"})], ids=["at once", "while the slot rests"])
def test_an_admins_drain_is_kept_for_the_next_worker(policy: Policy) -> None:
    drained = slurm_node(0, "IDLE", "DRAIN", reason="bad GPU")
    assert plan(seen(records=(drained,)), policy=policy, replicas=1).records.delete == ()


def test_an_admins_drain_is_kept_on_the_host_network() -> None:
    drained = msgspec.structs.replace(slurm_node(0, "IDLE", "DRAIN", reason="bad GPU"), name="host-0")
    on_host = WorkerTemplate(spec={"hostNetwork": True})
    assert plan(seen(records=(drained,), hosts=(host("host-0"),)), replicas=1, template=on_host).records.delete == ()


def test_a_worker_whose_slurmd_does_not_run_yet_has_no_say_about_the_node() -> None:
    """Its predecessor's record, drained by us, is not resumed under a pod that is still terminating."""
    pending = worker(0, "IDLE", "DRAIN", reason=DRAINED, phase="Pending", ready=False, status=slurmd(started=False))
    assert plan(seen(pending), replicas=1).changes == {}


def test_a_busy_node_without_a_pod_is_fenced_and_its_name_waits() -> None:
    lost = slurm_node(0, "MIXED")
    found = plan(seen(records=(lost,)), replicas=2)
    assert found.records.fence == (lost,)
    assert found.records.delete == ()
    assert [slot.hostname for slot in found.create] == ["gpu-1"]


def test_a_pinned_ordinal_returns_to_its_node() -> None:
    found = plan(seen(), policy=Policy(pins={0: "host-7"}), replicas=1, pinToNode=True)
    assert found.create == (Slot(0, node="host-7", hostname="gpu-0"),)


def test_a_worker_with_the_record_of_a_larger_predecessor_is_started_afresh() -> None:
    comment = PodInfo("slurm", "gpu-0", "host-0", "gpu", "uid-gpu", "earlier-pod").text
    small = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason=LOW, slurm={"comment": comment})
    assert plan(seen(small), replicas=1).condemned == {"gpu-0": "update"}


def test_a_refused_worker_that_an_admin_drained_waits_for_the_admin() -> None:
    comment = PodInfo("slurm", "gpu-0", "host-0", "gpu", "uid-gpu", "earlier-pod").text
    drained = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason="bad GPU", slurm={"comment": comment})
    assert plan(seen(drained), replicas=1).condemned == {}


def test_a_worker_that_promised_too_much_itself_is_left_for_the_user_to_correct() -> None:
    own = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason=LOW)
    assert plan(seen(own), replicas=1).condemned == {}


def daemon(ordinal: int, **fields: Any) -> Worker:
    return worker(ordinal, mode="DaemonSet", hostname=f"host-{ordinal}", **fields)


def test_daemon_mode_puts_one_worker_on_every_matching_node() -> None:
    hosts = (host("host-0"), host("host-1.example.org"), host("other", labels={"kind": "cpu"}))
    found = plan(seen(daemon(0), hosts=hosts[:2]), scalingMode="DaemonSet")
    assert found.create == (Slot(node="host-1.example.org", hostname="host-1"),)
    assert found.desired == 2


def test_a_daemon_worker_whose_node_is_gone_goes_too() -> None:
    found = plan(seen(daemon(0, absent=True), hosts=()), policy=Policy(absences={"host-0": 9}), scalingMode="DaemonSet")
    assert found.condemned == {"gpu-0": "placement"}
