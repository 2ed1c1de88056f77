import pytest

from kubeslurm.decide.config.stages import (
    MOUNT_DELAY,
    PROOF_DELAY,
    Check,
    Delivery,
    Pod,
    Progress,
    Trial,
    Verdict,
    check,
    deliver,
)
from kubeslurm.slurm.conf import Problem

ERROR = Problem(file="slurm.conf", line=3, message="unknown key Foo")
WARNING = Problem(file="slurm.conf", line=3, message="odd", severity="warning")


@pytest.mark.parametrize(
    ("live", "problems", "trial", "verdict"),
    [
        ("new", (), None, Verdict.ACCEPTED),
        ("new", (ERROR,), None, Verdict.ACCEPTED),
        ("old", (ERROR,), None, Verdict.REFUSED),
        ("", (ERROR,), None, Verdict.REFUSED),
        ("old", (WARNING,), None, Verdict.TRY),
        ("old", (), None, Verdict.TRY),
        ("", (), None, Verdict.TRY),
        ("old", (), Trial("running"), Verdict.TRYING),
        ("old", (), Trial("passed"), Verdict.PROMOTE),
        ("", (), Trial("passed"), Verdict.PROMOTE),
        ("old", (), Trial("refused", "slurm.conf:3: no"), Verdict.REFUSED),
        ("old", (), Trial("inconclusive", "Evicted"), Verdict.UNTRIED),
    ],
)
def test_a_configuration_becomes_live_only_by_passing(
    live: str, problems: tuple[Problem, ...], trial: Trial | None, verdict: Verdict
) -> None:
    assert check("new", live, problems, trial).verdict is verdict


def test_a_refusal_names_file_and_line() -> None:
    assert check("new", "old", (ERROR,), None) == Check(Verdict.REFUSED, "slurm.conf:3: unknown key Foo")


IDLE = Progress()
TOUCHED = Pod(started=True, touched="new", applied="old")


@pytest.mark.parametrize(
    ("pod", "last_run", "progress", "reachable", "step"),
    [
        (None, "", IDLE, True, Delivery.AWAIT_POD),
        (Pod(started=False), "", IDLE, True, Delivery.AWAIT_POD),
        (Pod(started=True, touched="new", applied="new"), "new", IDLE, True, Delivery.DONE),
        (Pod(started=True, touched="new", applied="new"), "new", IDLE, False, Delivery.DONE),
        # A fresh pod that starts with the configuration that ran before has read it from its files.
        (Pod(started=True), "new", IDLE, False, Delivery.RECORD),
        # The very first start: a reconfigure also makes slurmctld save its whole state once.
        (Pod(started=True), "", IDLE, True, Delivery.TOUCH),
        (Pod(started=True, touched="old", applied="old"), "old", IDLE, True, Delivery.TOUCH),
        (TOUCHED, "old", Progress(0.1), True, Delivery.AWAIT_MOUNT),
        (TOUCHED, "old", Progress(MOUNT_DELAY), False, Delivery.AWAIT_SLURM),
        (TOUCHED, "old", Progress(MOUNT_DELAY), True, Delivery.RECONFIGURE),
        # A new operator process does not know when the pod was touched; it goes on from there.
        (TOUCHED, "old", IDLE, True, Delivery.RECONFIGURE),
        (TOUCHED, "old", Progress(2.0, 0.5), True, Delivery.AWAIT_PROOF),
        (TOUCHED, "old", Progress(9.0, PROOF_DELAY, 1), True, Delivery.RECONFIGURE),
        # Every repetition restarts all workers, so they come ever later, and none once slurmctld has read the files.
        (TOUCHED, "old", Progress(9.0, PROOF_DELAY, 2), True, Delivery.AWAIT_PROOF),
        (TOUCHED, "old", Progress(99.0, 90.0, 1, read=True), True, Delivery.AWAIT_PROOF),
        (TOUCHED, "old", Progress(2.0, 0.5, proven=True), True, Delivery.RECORD),
    ],
)
def test_delivery_takes_one_step_after_the_other(
    pod: Pod | None, last_run: str, progress: Progress, reachable: bool, step: Delivery
) -> None:
    assert deliver("new", pod, last_run, progress, reachable=reachable) is step
