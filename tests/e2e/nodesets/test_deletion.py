"""Deleting a NodeSet drains its workers first, however the deletion is asked for."""

import pytest

from tests.support.nodeset import Workers
from tests.support.settled import is_as_desired
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def second(slurm: Slurm) -> Workers:
    """Another NodeSet with one worker, on the third node."""
    found = Workers.create(slurm, "extra", "extra-")
    wait_for("the extra worker", lambda: slurm.nodes().get("extra-0") == "idle")
    # A new NodeSet brings a reconfigure; the job starts after it, so that only the deletion is tested.
    wait_for("slurmctld to run with the new NodeSet", lambda: is_as_desired(slurm))
    return found


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_busy_nodeset_waits_for_its_job(second: Workers, cascade: str) -> None:
    job = second.run_job(600, "--nodelist=extra-0")
    second.slurm.kubectl("delete", NODESET, "extra", f"--cascade={cascade}", "--wait=false")
    wait_for("the drain", lambda: second.slurm.nodes().get("extra-0") == "draining")
    assert second.pods()
    second.finish(job)
    wait_for("the NodeSet to be gone", lambda: second.slurm.find(NODESET, "extra") is None)
    assert not second.pods()
    wait_for("no ghost", lambda: "extra-0" not in second.slurm.nodes())


def test_orphaned_workers_go_on_and_are_taken_by_a_new_nodeset(second: Workers) -> None:
    job = second.run_job(600, "--nodelist=extra-0")
    uids = second.uids()
    second.slurm.kubectl("delete", NODESET, "extra", "--cascade=orphan", "--wait=true", "--timeout=180s")
    again = Workers.create(second.slurm, "extra", "extra-")
    wait_for("the new NodeSet to have its worker", lambda: again.status().get("readyReplicas") == 1)
    assert again.uids() == uids
    assert "drain" not in second.slurm.nodes()["extra-0"]
    second.finish(job)
    second.slurm.kubectl("delete", NODESET, "extra", "--wait=true", "--timeout=180s")
    assert not second.pods()


def test_the_force_annotation_does_not_wait(second: Workers) -> None:
    job = second.run_job(600, "--nodelist=extra-0")
    second.slurm.kubectl("annotate", NODESET, "extra", "kubeslurm.dev/force-delete=true")
    second.slurm.kubectl("delete", NODESET, "extra", "--wait=false")
    wait_for("the NodeSet to be gone", lambda: second.slurm.find(NODESET, "extra") is None)
    assert not second.pods()
    assert second.slurm.job_state(job) != "COMPLETED"
