"""Deleting a NodeSet drains its workers first, however the deletion is asked for."""

from collections.abc import Iterator

import pytest

from tests.support.nodeset import NODESET, Workers
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def second(slurm: Slurm) -> Iterator[Workers]:
    """Another NodeSet with one worker, for deleting; the first shrinks to make room."""
    first = Workers(slurm)
    found = Workers(slurm, "extra")
    try:
        first.scale(1)
        first.wait_until_idle(1)
        Workers.create(slurm, "extra", "extra-")
        wait_for("the extra worker", lambda: slurm.nodes().get("extra-0") == "idle")
        yield found
    finally:
        found.delete()
        first.scale(2)
    first.wait_until_idle(2)


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


def test_the_force_annotation_does_not_wait(second: Workers) -> None:
    job = second.run_job(600, "--nodelist=extra-0")
    second.slurm.kubectl("annotate", NODESET, "extra", "kubeslurm.dev/force-delete=true")
    second.slurm.kubectl("delete", NODESET, "extra", "--wait=false")
    wait_for("the NodeSet to be gone", lambda: second.slurm.find(NODESET, "extra") is None)
    second.slurm.run("scancel", str(job), check=False)
