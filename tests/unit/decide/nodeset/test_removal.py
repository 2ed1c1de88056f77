"""When a worker pod may be deleted, and why it stays."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.decide.nodeset.removal import FORCE_HINT, Doubt, RemovalFacts, needs_slurm, objection, rests_on_absence
from kubeslurm.decide.nodeset.worker import Worker
from tests.support.workers import slurm_node, slurmd, worker

DRAINED = slurm_node(1, "IDLE", "DRAIN")
STARTED = worker(1, absent=True)
UNSTARTED = worker(1, absent=True, phase="Pending", ready=False, status=slurmd(started=False))
UNSTARTED_BUSY = worker(
    1, absent=True, phase="Pending", ready=False, status=slurmd(started=False), annotations={names.POD_BUSY: "true"}
)
NOTED_BUSY = worker(1, absent=True, annotations={names.POD_BUSY: "true"})
PROTECTED = worker(1, absent=True, labels={names.LABEL_POD_PROTECT: "true"})


def known(**fields: Any) -> RemovalFacts:
    """A started worker whose node Slurm shows as drained, without any other doubt."""
    given: dict[str, Any] = {"worker": STARTED, "has_restapi": True, "answered": True, "node": DRAINED}
    return RemovalFacts(**(given | {"drained_before": True, "jobs_known": True} | fields))


MAY_GO: dict[str, dict[str, Any]] = {
    "drained": {},
    "down and drained": {"node": slurm_node(1, "DOWN", "DRAIN")},
    "absent from several lists": {"node": None, "absences": 3},
    "never scheduled": {"worker": worker(1, node="", absent=True), "has_restapi": False, "answered": False},
    "slurmd never started, and Slurm does not know the node": {"worker": UNSTARTED, "node": None},
    "slurmd never started, and the record of an earlier pod is drained": {"worker": UNSTARTED},
    "ended": {"worker": worker(1, phase="Failed"), "answered": False, "node": None},
    "forced by its NodeSet": {"forced": True, "node": slurm_node(1, "MIXED")},
    "forced": {"worker": worker(1, annotations={names.FORCE_DELETE: "true"}), "node": slurm_node(1, "MIXED")},
}


@pytest.mark.parametrize("fields", MAY_GO.values(), ids=MAY_GO)
def test_a_worker_without_a_job_may_go(fields: dict[str, Any]) -> None:
    assert objection(known(**fields)) is None


STAYS: dict[str, tuple[dict[str, Any], Doubt]] = {
    "no RestApi": ({"has_restapi": False, "answered": False, "node": None}, Doubt.NO_RESTAPI),
    "no answer": ({"answered": False, "node": None, "absences": 9}, Doubt.SLURM_NOT_REACHABLE),
    "no list of jobs": ({"jobs_known": False}, Doubt.JOBS_UNKNOWN),
    "jobs": ({"node": slurm_node(1, "MIXED", "DRAIN")}, Doubt.RUNS_JOBS),
    "jobs of a slurmd that started unnoticed": (
        {"worker": UNSTARTED, "node": slurm_node(1, "MIXED")},
        Doubt.RUNS_JOBS,
    ),
    "slurmd not started, no RestApi": (
        {"worker": UNSTARTED, "has_restapi": False, "answered": False, "node": None},
        Doubt.NO_RESTAPI,
    ),
    "slurmd not started, no answer": (
        {"worker": UNSTARTED, "answered": False, "node": None},
        Doubt.SLURM_NOT_REACHABLE,
    ),
    "slurmd not started, jobs on a silent node": (
        {"worker": UNSTARTED, "node": slurm_node(1, "MIXED", "NOT_RESPONDING")},
        Doubt.RUNS_JOBS,
    ),
    "slurmd not started, an idle node that takes jobs": (
        {"worker": UNSTARTED, "node": slurm_node(1, "IDLE")},
        Doubt.NOT_DRAINED,
    ),
    "slurmd not started, a suspended job": (
        {"worker": UNSTARTED, "hidden_job": "job 7 is on node gpu-1 (SUSPENDED)"},
        Doubt.HIDDEN_JOB,
    ),
    "not drained": ({"node": slurm_node(1, "IDLE")}, Doubt.NOT_DRAINED),
    "an unclear state": ({"node": slurm_node(1, "UNKNOWN", "DRAIN")}, Doubt.NOT_DRAINED),
    "a suspended job": ({"hidden_job": "job 7 is on node gpu-1 (SUSPENDED)"}, Doubt.HIDDEN_JOB),
    "drained after the jobs were listed": ({"drained_before": False}, Doubt.NOT_DRAINED),
    "absent from few lists": ({"node": None, "absences": 2}, Doubt.ABSENT_BRIEFLY),
    "forgotten with jobs": ({"node": None, "absences": 9, "worker": PROTECTED}, Doubt.RAN_JOBS),
    "forgotten with jobs, without protection from eviction": (
        {"node": None, "absences": 9, "worker": NOTED_BUSY},
        Doubt.RAN_JOBS,
    ),
    "slurmd not started, forgotten with jobs": (
        {"node": None, "worker": UNSTARTED_BUSY},
        Doubt.RAN_JOBS,
    ),
    "perhaps known to Slurm by another name": ({"node": None, "absences": 9, "other_name": "n1"}, Doubt.OTHER_NAME),
    "slurmd not started, perhaps known by another name": (
        {"worker": UNSTARTED, "node": None, "other_name": "n1"},
        Doubt.OTHER_NAME,
    ),
    "another node at its address": ({"other_name": "n1"}, Doubt.OTHER_NAME),
    "not the first that is absent": ({"node": None, "absences": 9, "others_first": True}, Doubt.ONE_AT_A_TIME),
}


@pytest.mark.parametrize(("fields", "doubt"), STAYS.values(), ids=STAYS)
def test_in_doubt_the_pod_stays(fields: dict[str, Any], doubt: Doubt) -> None:
    found = objection(known(**fields))
    assert found is not None
    assert found.doubt is doubt


@pytest.mark.parametrize("has_restapi", [True, False])
def test_the_user_learns_how_to_remove_a_pod_that_never_started_while_slurm_is_away(has_restapi: bool) -> None:
    found = objection(RemovalFacts(worker=UNSTARTED, has_restapi=has_restapi))
    assert found is not None
    assert FORCE_HINT in found.message


def test_facts_that_nobody_has_filled_in_keep_the_pod() -> None:
    assert objection(RemovalFacts(worker=STARTED)) is not None
    assert objection(RemovalFacts(worker=STARTED, has_restapi=True, absences=9)) is not None


@pytest.mark.parametrize(
    ("each", "asks"),
    [(STARTED, True), (UNSTARTED, True), (worker(1, node=""), False), (worker(1, phase="Succeeded"), False)],
)
def test_slurm_is_asked_only_where_slurmd_may_run(each: Worker, asks: bool) -> None:
    assert needs_slurm(each, forced=False) is asks
    assert not needs_slurm(each, forced=True)


def test_only_a_removal_of_an_absent_worker_is_done_slowly() -> None:
    assert rests_on_absence(known(node=None, absences=9))
    assert not rests_on_absence(known())
    assert not rests_on_absence(known(worker=UNSTARTED, node=None))
    assert not rests_on_absence(known(forced=True, node=None))
