"""The whole policy: what a pass does, and what it leaves alone."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import NodeSetStatus, WorkerTemplate
from kubeslurm.api.slinky.strategy import UpdateStrategy
from kubeslurm.api.slots import Slot
from kubeslurm.decide.nodeset.cordon import Cordon
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.plan import Plan, decide, needs_no_patch
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.workers import NOW, drained_by_us, facts, host, nodeset, slurm_node, slurmd, worker

LOW = "Low RealMemory (reported:24105 < 100.00% of configured:32000)"
DRAINED = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"


def plan(known: Facts, **spec: Any) -> Plan:
    return decide(nodeset(**spec), known)


def removed(found: Plan) -> list[str]:
    return [each.name for each in found.remove]


def test_an_empty_nodeset_creates_its_workers() -> None:
    assert plan(facts(), replicas=2).create == (Slot(0, hostname="gpu-0"), Slot(1, hostname="gpu-1"))


def test_a_nodeset_that_is_as_desired_does_nothing() -> None:
    found = plan(facts(worker(0), worker(1)), replicas=2)
    assert found == Plan(desired=2)
    assert not found.is_waiting


def test_an_idle_surplus_worker_is_drained_and_offered_to_the_gate() -> None:
    found = plan(facts(worker(0), worker(1)), replicas=1)
    assert found.leaving == {"gpu-1": "scale-in"}
    assert found.updates == {"gpu-1": NodeUpdate.drain(DRAINED)}
    assert removed(found) == ["gpu-1"]


@pytest.mark.parametrize("state", [("MIXED",), ("ALLOCATED",), ("IDLE", "COMPLETING"), ("MIXED", "DRAIN")])
def test_a_busy_surplus_worker_is_drained_and_not_offered(state: tuple[str, ...]) -> None:
    found = plan(facts(worker(1, *state)), replicas=0)
    assert removed(found) == []
    assert found.drains["gpu-1"].cause == "scale-in"


BLIND = {
    "scale-in": {"replicas": 0},
    "deletion": {"replicas": 2, "meta": {"deletionTimestamp": NOW}},
}


@pytest.mark.parametrize("spec", BLIND.values(), ids=BLIND)
@pytest.mark.parametrize("state", [("IDLE",), ("MIXED",), ("IDLE", "DRAIN")])
def test_nothing_is_removed_or_written_while_slurm_does_not_answer(
    spec: dict[str, Any], state: tuple[str, ...]
) -> None:
    found = plan(facts(worker(0, *state), worker(1, *state), known=False), **spec)
    assert removed(found) == []
    assert found.updates == {}
    assert found.restart == ()
    assert set(found.drains) == {"gpu-0", "gpu-1"}


def test_an_update_removes_nothing_while_slurm_does_not_answer() -> None:
    found = plan(facts(worker(0, revision="old"), known=False), replicas=1)
    assert found.leaving == {"gpu-0": "update"}
    assert removed(found) == []


def test_new_workers_are_created_even_while_slurm_does_not_answer() -> None:
    assert len(plan(facts(worker(0), known=False), replicas=3).create) == 2


def test_a_worker_that_slurm_does_not_list_is_not_offered_before_several_lists_agree() -> None:
    absent = worker(0, absent=True)
    assert removed(plan(facts(absent), replicas=0)) == []
    assert removed(plan(facts(absent, absences={"gpu-0": 2}), replicas=0)) == []
    assert removed(plan(facts(absent, absences={"gpu-0": 3}), replicas=0)) == ["gpu-0"]


@pytest.mark.parametrize(
    "fields", [{"status": slurmd(started=False)}, {"node": ""}], ids=["never started", "never scheduled"]
)
def test_a_surplus_worker_without_a_slurmd_is_offered_to_the_gate_at_once(fields: dict[str, Any]) -> None:
    known = facts(worker(0, phase="Pending", ready=False, absent=True, **fields), known=False)
    assert removed(plan(known, replicas=0)) == ["gpu-0"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_is_replaced(phase: str) -> None:
    found = plan(facts(worker(0, phase=phase, ready=False)), replicas=1)
    assert removed(found) == ["gpu-0"]
    assert found.leaving == {}


def test_a_slot_whose_worker_keeps_failing_cools_down() -> None:
    cooling_down = frozenset({"gpu-0"})
    failed = worker(0, phase="Failed", ready=False)
    assert removed(plan(facts(failed, cooling_down=cooling_down), replicas=1)) == []
    assert plan(facts(cooling_down=cooling_down), replicas=1).create == ()


def test_scaling_back_out_lifts_our_own_drain() -> None:
    back = worker(1, "MIXED", "DRAIN", reason=DRAINED, annotations=drained_by_us("scale-in"))
    found = plan(facts(worker(0), back), replicas=2)
    assert found.leaving == {}
    assert found.updates == {"gpu-1": NodeUpdate.resume()}


def test_scaling_elsewhere_does_not_lift_the_drain_of_a_rolling_update() -> None:
    """Creating or removing other workers must not let new jobs onto a node that drains for an update."""
    updating = worker(
        0, "MIXED", "DRAIN", reason="slurm-operator: x", revision="old", annotations=drained_by_us("update")
    )
    found = plan(facts(updating, worker(1)), replicas=4)
    assert found.leaving == {"gpu-0": "update"}
    assert found.updates["gpu-0"].state == ("DRAIN",)


def test_deleting_a_nodeset_drains_every_worker_first() -> None:
    found = plan(facts(worker(0, "MIXED"), worker(1)), replicas=2, meta={"deletionTimestamp": NOW})
    assert found.leaving == {"gpu-0": "deletion", "gpu-1": "deletion"}
    assert found.create == ()
    assert removed(found) == ["gpu-1"]
    assert set(found.updates) == {"gpu-0", "gpu-1"}


def test_pods_of_the_other_mode_are_drained_away() -> None:
    found = plan(facts(worker(0, "MIXED", mode="DaemonSet")), replicas=1)
    assert found.leaving == {"gpu-0": "placement"}
    assert removed(found) == []


def test_an_uncordoned_node_gets_its_worker_back() -> None:
    reason = "slurm-operator: Node (host-0) was cordoned, Pod (slurm/gpu-0) must be cordoned"
    found = plan(facts(worker(0, "IDLE", "DRAIN", reason=reason, annotations=drained_by_us("node"))), replicas=1)
    assert found.updates == {"gpu-0": NodeUpdate.resume()}


def test_a_cordoned_node_drains_its_worker_and_removes_nothing() -> None:
    found = plan(facts(worker(0, host=host("host-0", unschedulable=True))), replicas=1)
    assert found.updates["gpu-0"].state == ("DRAIN",)
    assert removed(found) == []
    assert found.leaving == {}


def test_a_cordon_that_mirrors_a_drain_is_written_to_slurm_only_when_nobody_mirrors() -> None:
    mirror = {names.SLURM_DRAIN: "Cordon"}
    cordoned = worker(0, host=host("host-0", unschedulable=True, annotations=mirror))
    assert plan(facts(cordoned, mirrors_drains=True), replicas=1).updates == {}
    assert plan(facts(cordoned), replicas=1).updates["gpu-0"].state == ("DRAIN",)


def test_updates_by_hand_wait_for_the_user() -> None:
    found = plan(facts(worker(0, revision="old")), replicas=1, updateStrategy=UpdateStrategy(type="OnDelete"))
    assert found.leaving == {}


def test_the_record_of_a_worker_that_is_gone_is_deleted() -> None:
    ghost = slurm_node(5, "DOWN", reason="slurm-operator: Pod is terminating")
    assert plan(facts(worker(0), records=(ghost,)), replicas=1).records.remove == ("gpu-5",)


@pytest.mark.parametrize("cooling", [(), ("gpu-0",)], ids=["at once", "while the slot cools down"])
def test_an_admins_drain_is_kept_for_the_next_worker(cooling: tuple[str, ...]) -> None:
    drained = slurm_node(0, "IDLE", "DRAIN", reason="bad GPU")
    known = facts(records=(drained,), cooling_down=frozenset(cooling))
    assert plan(known, replicas=1).records.remove == ()


def test_an_admins_drain_is_kept_on_the_host_network() -> None:
    drained = msgspec.structs.replace(slurm_node(0, "IDLE", "DRAIN", reason="bad GPU"), name="host-0")
    on_host = WorkerTemplate(spec={"hostNetwork": True})
    assert plan(facts(records=(drained,), hosts=(host("host-0"),)), replicas=1, template=on_host).records.remove == ()


def test_a_worker_whose_slurmd_does_not_run_yet_has_no_say_about_the_node() -> None:
    """Its predecessor's record, drained by us, is not resumed under a pod that is still terminating."""
    pending = worker(0, "IDLE", "DRAIN", reason=DRAINED, phase="Pending", ready=False, status=slurmd(started=False))
    assert plan(facts(pending), replicas=1).updates == {}


def test_a_busy_node_without_a_pod_is_fenced_and_its_name_waits() -> None:
    lost = slurm_node(0, "MIXED")
    found = plan(facts(records=(lost,)), replicas=2)
    assert found.records.fence == (lost,)
    assert found.records.remove == ()
    assert [slot.hostname for slot in found.create] == ["gpu-1"]


def test_a_pinned_ordinal_returns_to_its_node() -> None:
    before = NodeSetStatus(ordinalToNode={"0": "host-7"})
    there = facts(hosts=(host("host-7"),))
    assert plan(there, replicas=1, pinToNode=True, status=before).create == (Slot(0, node="host-7", hostname="gpu-0"),)
    assert plan(facts(), replicas=1, pinToNode=True, status=before).create == (Slot(0, hostname="gpu-0"),)


def test_a_worker_with_the_record_of_a_larger_predecessor_is_started_afresh() -> None:
    comment = PodInfo("slurm", "gpu-0", "host-0", "gpu", "uid-gpu", "earlier-pod").text
    small = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason=LOW, slurm={"comment": comment})
    assert plan(facts(small), replicas=1).leaving == {"gpu-0": "update"}


def test_a_refused_worker_that_an_admin_drained_waits_for_the_admin() -> None:
    comment = PodInfo("slurm", "gpu-0", "host-0", "gpu", "uid-gpu", "earlier-pod").text
    drained = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason="bad GPU", slurm={"comment": comment})
    assert plan(facts(drained), replicas=1).leaving == {}


def test_a_worker_that_promised_too_much_itself_is_left_for_the_user_to_correct() -> None:
    own = worker(0, "IDLE", "DRAIN", "INVALID_REG", reason=LOW)
    assert plan(facts(own), replicas=1).leaving == {}


def daemon(ordinal: int, **fields: Any) -> Worker:
    return worker(ordinal, mode="DaemonSet", hostname=f"host-{ordinal}", **fields)


def test_daemon_mode_puts_one_worker_on_every_matching_node() -> None:
    hosts = (host("host-0"), host("host-1.example.org"), host("other", labels={"kind": "cpu"}))
    found = plan(facts(daemon(0), hosts=hosts[:2]), scalingMode="DaemonSet")
    assert found.create == (Slot(node="host-1.example.org", hostname="host-1"),)
    assert found.desired == 2


def test_a_daemon_worker_whose_node_is_gone_goes_too() -> None:
    found = plan(facts(daemon(0, absent=True), absences={"host-0": 9}), scalingMode="DaemonSet")
    assert found.leaving == {"gpu-0": "placement"}


def test_the_plan_says_what_cordons_become() -> None:
    back = worker(1, annotations=drained_by_us("scale-in"))
    found = plan(facts(worker(0, host=host("host-0", unschedulable=True)), back), replicas=2)
    assert found.cordons == {"gpu-0": Cordon(True, "node"), "gpu-1": Cordon(False)}


def test_a_pod_that_goes_at_once_is_not_patched_before() -> None:
    ended, unstarted = worker(0, phase="Failed", ready=False), worker(1, ready=False, status=slurmd(started=False))
    drained, fresh = worker(2, annotations=drained_by_us("scale-in")), worker(3)
    found = plan(facts(ended, unstarted, drained, fresh), replicas=0)
    assert needs_no_patch(found) == {"gpu-0", "gpu-1", "gpu-2"}


def test_deciding_twice_from_the_same_facts_gives_the_same_plan() -> None:
    known = facts(worker(0, "MIXED"), worker(1), records=(slurm_node(5, "MIXED"),), cooling_down=frozenset({"gpu-7"}))
    assert plan(known, replicas=1) == plan(known, replicas=1)
