"""The way of a configuration: wanted, checked, live, running. Nothing unchecked gets past the second step."""

from enum import Enum
from typing import Literal

import msgspec

from kubeslurm.slurm.conf import Problem

# The kubelet refreshes a pod's files 0.3 to 1.0 s after the pod object changed (measured).
MOUNT_DELAY = 1.0
# A reconfigure that cannot be seen to have worked is repeated after this long.
PROOF_DELAY = 5.0
LONGEST_PROOF_DELAY = 60.0
# A trial that could not run says nothing about the configuration: try again, not too often.
TRIAL_PAUSE = 20.0


class Trial(msgspec.Struct, frozen=True):
    """What came of trying a configuration in a throw-away slurmctld."""

    outcome: Literal["running", "passed", "refused", "inconclusive"]
    message: str = ""


class Verdict(Enum):
    """Where a wanted configuration stands."""

    ACCEPTED = "accepted"  # it is the live one
    TRY = "try"
    TRYING = "trying"
    PROMOTE = "promote"
    REFUSED = "refused"
    UNTRIED = "untried"  # the trial could not run


class Check(msgspec.Struct, frozen=True):
    """The verdict, and the words for it."""

    verdict: Verdict
    message: str = ""


def check(wanted: str, live: str, problems: tuple[Problem, ...], trial: Trial | None) -> Check:
    """What to do about the wanted configuration (digests; an empty one means none)."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if wanted == live:
        return Check(Verdict.ACCEPTED)
    if errors:
        return Check(Verdict.REFUSED, "; ".join(str(problem) for problem in errors[:5]))
    if trial is None:
        return Check(Verdict.TRY)
    match trial.outcome:
        case "running":
            return Check(Verdict.TRYING)
        case "passed":
            return Check(Verdict.PROMOTE)
        case "refused":
            return Check(Verdict.REFUSED, trial.message)
    return Check(Verdict.UNTRIED, trial.message)


class Pod(msgspec.Struct, frozen=True):
    """What matters of the slurmctld pod for delivering a configuration."""

    started: bool  # slurmctld runs in it
    touched: str = ""  # digest in the annotation that makes the kubelet look
    applied: str = ""  # digest that slurmctld was seen to run with


class Delivery(Enum):
    """The next step on the way from the ConfigMap into slurmctld and all workers."""

    DONE = "done"
    AWAIT_POD = "await pod"
    TOUCH = "touch"
    AWAIT_MOUNT = "await mount"
    AWAIT_SLURM = "await slurm"
    RECONFIGURE = "reconfigure"
    AWAIT_PROOF = "await proof"
    RECORD = "record"


class Progress(msgspec.Struct, frozen=True):
    """How far the delivery to this pod has come, as far as this process remembers."""

    since_touch: float | None = None
    since_reconfigure: float | None = None
    attempts: int = 0
    read: bool = False  # slurmctld has read it; only workers are behind
    proven: bool = False


def deliver(live: str, pod: Pod | None, last_run: str, progress: Progress, *, reachable: bool) -> Delivery:
    """One step at a time; each rests on what is recorded on the pod, so that a new operator process goes on with it.

    `last_run` is the digest that slurmctld ran with before this pod: a new pod that starts with the same one has read
    it from its files and needs no reconfigure.
    """
    if pod is None or not pod.started:
        return Delivery.AWAIT_POD
    if pod.applied == live:
        return Delivery.DONE
    if not pod.applied and not pod.touched and last_run == live:
        return Delivery.RECORD
    if pod.touched != live:
        return Delivery.TOUCH
    return Delivery.RECORD if progress.proven else _reconfigure(progress, reachable)


def proof_delay(attempts: int) -> float:
    """How long to wait for the effect of a reconfigure; each one restarts every slurmd, so they come ever later."""
    return float(min(PROOF_DELAY * 2 ** max(attempts - 1, 0), LONGEST_PROOF_DELAY))


def _reconfigure(progress: Progress, reachable: bool) -> Delivery:
    if progress.since_touch is not None and progress.since_touch < MOUNT_DELAY:
        return Delivery.AWAIT_MOUNT
    if not reachable:
        return Delivery.AWAIT_SLURM
    waited = progress.since_reconfigure
    if progress.read or (waited is not None and waited < proof_delay(progress.attempts)):
        return Delivery.AWAIT_PROOF
    return Delivery.RECONFIGURE
