"""Whether the desired configuration is accepted; only an accepted one is delivered."""

from collections.abc import Sequence
from enum import Enum

import msgspec

from kubeslurm.decide.config.facts import Configuration, Facts, Trial
from kubeslurm.decide.config.trial import explained
from kubeslurm.slurm import conf

# A trial that could not run says nothing about the configuration: it is repeated, not too often.
TRIAL_PAUSE = 20.0
SHOWN_PROBLEMS = 5


class AcceptanceStep(Enum):
    """What is done about the desired configuration."""

    NOTHING_DESIRED = "nothing desired"
    ACCEPTED = "accepted"
    START_TRIAL = "start trial"
    AWAIT_TRIAL = "await trial"
    REPEAT_TRIAL = "repeat trial"
    REJECT = "reject"


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """The step, and what the ConfigMap and the trials shall be after it."""

    step: AcceptanceStep
    message: str = ""  # why it is rejected, or why the trial could not run
    deliver: Configuration | None = None  # what the ConfigMap shall hold; None: it stays as it is
    restart: tuple[str, ...] = ()  # changed settings that slurmctld reads only at its start
    kept_trial: str = ""  # digest of the trial that stays; empty: none

    @property
    def on_trial(self) -> bool:
        return self.step in (AcceptanceStep.START_TRIAL, AcceptanceStep.AWAIT_TRIAL)


def decide_acceptance(facts: Facts) -> Acceptance:
    """The next step of the desired configuration."""
    desired = facts.desired
    if desired is None:
        return Acceptance(step=AcceptanceStep.NOTHING_DESIRED)
    step, message = _step(facts, desired)
    if step is AcceptanceStep.ACCEPTED:
        return Acceptance(step=step, deliver=desired, restart=_restart(facts, desired))
    waited = facts.trial.age if facts.trial else 0.0
    repeated = step is AcceptanceStep.REPEAT_TRIAL and waited >= TRIAL_PAUSE
    # A trial that ended stays as the record of a rejection, also for the next operator process.
    kept = "" if repeated else desired.digest
    return Acceptance(step=step, message=message, deliver=facts.accepted, kept_trial=kept)


def _step(facts: Facts, desired: Configuration) -> tuple[AcceptanceStep, str]:
    if facts.refused:
        return AcceptanceStep.REJECT, _listed(facts.refused)
    # What only slurmrestd reads needs no trial, and for a slurmctld elsewhere there is none of ours to try it.
    if desired.digest == facts.delivered or facts.external:
        return AcceptanceStep.ACCEPTED, ""
    found = conf.lint(desired.files)
    if errors := [problem for problem in found if problem.severity == "error"]:
        return AcceptanceStep.REJECT, _listed(errors)
    if facts.trial is None:
        return AcceptanceStep.START_TRIAL, ""
    return _outcome(facts.trial, desired, found)


def _listed(problems: Sequence[conf.Problem]) -> str:
    return "; ".join(str(problem) for problem in problems[:SHOWN_PROBLEMS])


def _outcome(trial: Trial, desired: Configuration, remarks: Sequence[conf.Problem]) -> tuple[AcceptanceStep, str]:
    match trial.outcome:
        case "running":
            return AcceptanceStep.AWAIT_TRIAL, ""
        case "passed":
            return AcceptanceStep.ACCEPTED, ""
        case "failed":
            texts = (explained(trial.message, desired.files), _listed(remarks))
            return AcceptanceStep.REJECT, "; ".join(filter(None, texts))
    return AcceptanceStep.REPEAT_TRIAL, trial.message


def _restart(facts: Facts, desired: Configuration) -> tuple[str, ...]:
    if facts.external or facts.accepted is None or desired.digest == facts.delivered:
        return ()
    return tuple(conf.needs_restart(facts.accepted.files, desired.files))
