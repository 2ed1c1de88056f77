"""Workers that Slurm does not know, and a slurmctld that lost its state."""

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.decide.nodeset.slurm.registration import Unclaimed, is_state_lost, unregistered
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Node
from tests.support.workers import facts, nodeset, slurm_node, worker


def test_an_unregistered_worker_is_started_afresh_one_at_a_time() -> None:
    lost = [worker(n, absent=True) for n in (1, 2)]
    fine = [worker(n) for n in range(3, 12)]
    assert unregistered(facts(*lost, *fine, absences={"gpu-1": 3, "gpu-2": 3}), ()) == [lost[0]]


def test_nobody_is_restarted_when_slurmctld_has_lost_its_state() -> None:
    absences = {f"gpu-{n}": 99 for n in range(4)}
    known = facts(*(worker(n, absent=True) for n in range(4)), state_lost=True, absences=absences)
    assert unregistered(known, ()) == []


def test_a_slurmctld_that_misses_too_many_has_lost_its_state() -> None:
    assert is_state_lost(missing=1, total=1, known=0)
    assert is_state_lost(missing=4, total=10, known=6)
    assert not is_state_lost(missing=3, total=10, known=7)
    assert not is_state_lost(missing=1, total=2, known=1)


def test_absence_must_be_confirmed_before_a_restart() -> None:
    assert unregistered(facts(worker(1, absent=True), absences={"gpu-1": 2}), ()) == []


def test_the_only_worker_may_be_restarted() -> None:
    lost = worker(1, absent=True)
    assert unregistered(facts(lost, absences={"gpu-1": 3}), ()) == [lost]


def test_nobody_is_unregistered_while_slurm_does_not_answer() -> None:
    assert unregistered(facts(worker(1), known=False, absences={"gpu-1": 99}), ()) == []


def at_address(each: Worker, address: str) -> Worker:
    status = msgspec.structs.replace(each.pod.status, podIP=address)
    return Worker(pod=msgspec.structs.replace(each.pod, status=status))


UNCLAIMED = {
    "its address": Node(name="n1.example.org", address="10.0.0.1"),
    "the NodeSet's feature": Node(name="n1.example.org", address="10.9.9.9", features=("gpu",)),
    "the NodeSet's mark": Node(name="n1.example.org", extra=names.slurm_node_owner("uid-gpu")),
}


@pytest.mark.parametrize("node", UNCLAIMED.values(), ids=UNCLAIMED)
def test_a_missing_worker_may_be_a_node_that_no_pod_claims(node: Node) -> None:
    found = Unclaimed.of(nodeset(), [node])
    assert found.name_of(at_address(worker(1), "10.0.0.1"), absent=True) == "n1.example.org"


def test_a_worker_that_slurm_knows_is_doubted_only_for_its_address() -> None:
    each = at_address(worker(1), "10.0.0.1")
    assert Unclaimed.of(nodeset(), [UNCLAIMED["its address"]]).name_of(each, absent=False) == "n1.example.org"
    assert Unclaimed.of(nodeset(), [UNCLAIMED["the NodeSet's feature"]]).name_of(each, absent=False) == ""


def test_a_record_that_names_a_pod_and_a_node_of_others_are_no_doubt() -> None:
    others = Node(name="login", address="10.9.9.9", features=("cpu",))
    found = Unclaimed.of(nodeset(), [slurm_node(7, address="10.0.0.1", features=("gpu",)), others])
    assert found.name_of(at_address(worker(1), "10.0.0.1"), absent=True) == ""
    assert found.name_of(worker(1), absent=True) == ""
