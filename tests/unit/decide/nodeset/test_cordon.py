"""What the cordon annotations of a pod become."""

import pytest

from kubeslurm.api import names
from kubeslurm.decide.nodeset.cordon import Cause, Cordon, cordon, is_drain_lifted
from kubeslurm.decide.nodeset.worker import Worker
from tests.support.workers import drained_by_us, worker

OURS = "slurm-operator: Pod (slurm/gpu-1) is pending termination for scale-in"
ADMIN = "replacing the fan"
BY_USER = {names.POD_CORDON: "true"}
BY_BOTH = {names.POD_CORDON: "true", names.POD_CORDON_BY: "scale-in+user"}


def test_our_cordon_is_forgotten_only_when_slurm_shows_no_drain_of_ours() -> None:
    assert not is_drain_lifted(worker(1, "IDLE", "DRAIN", reason=OURS))
    assert is_drain_lifted(worker(1))
    assert is_drain_lifted(worker(1, "IDLE", "DRAIN", reason=ADMIN))
    assert is_drain_lifted(worker(1, absent=True))


CORDONS: dict[str, tuple[Worker, Cause | None, Cordon | None]] = {
    "a worker that takes jobs has none": (worker(1), None, None),
    "the cause of a drain is written": (worker(1), Cause.SCALE_IN, Cordon(True, "scale-in")),
    "a new cause replaces the old one": (
        worker(1, annotations=drained_by_us("node")),
        Cause.UPDATE,
        Cordon(True, "update"),
    ),
    "a user's cordon is noted below ours": (worker(1, annotations=BY_USER), Cause.UPDATE, Cordon(True, "update+user")),
    "a user's cordon stays when ours ends": (worker(1, annotations=BY_BOTH), Cause.USER, Cordon(True)),
    "ours is lifted when Slurm shows no drain": (
        worker(1, annotations=drained_by_us("node")),
        None,
        Cordon(False),
    ),
    "ours stays while Slurm shows our drain": (
        worker(1, "IDLE", "DRAIN", reason=OURS, annotations=drained_by_us("scale-in")),
        None,
        None,
    ),
    "one that the reference operator left becomes ours": (
        worker(1, "IDLE", "DRAIN", reason=OURS, annotations=BY_USER),
        None,
        Cordon(True, "node"),
    ),
}


@pytest.mark.parametrize(("each", "cause", "wanted"), CORDONS.values(), ids=CORDONS)
def test_what_the_cordon_becomes(each: Worker, cause: Cause | None, wanted: Cordon | None) -> None:
    assert cordon(each, cause, slurm_known=True) == wanted


def test_no_cordon_is_lifted_while_slurm_cannot_be_asked() -> None:
    each = worker(1, absent=True, annotations=drained_by_us("node"))
    assert cordon(each, None, slurm_known=False) is None


def test_the_values_of_causes_do_not_change() -> None:
    """They are on the pods of running clusters."""
    assert [*Cause] == ["scale-in", "update", "deletion", "placement", "node", ""]
