from datetime import UTC, datetime

import pytest

from kubeslurm.decide.config.acceptance import TRIAL_PAUSE, AcceptanceStep, decide_acceptance
from kubeslurm.decide.config.facts import Configuration, Facts, Trial
from kubeslurm.slurm.conf import Problem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = Configuration("old", {"slurm.conf": "ClusterName=c\n"})
NEW = Configuration("new", {"slurm.conf": "ClusterName=c\nSlurmctldHost=h\nMaxJobCount=7\n"})
BAD = Configuration("new", {"slurm.conf": "ClusterName=c\nSlurmctldHost=h\nMaxJobCount=many\n"})


@pytest.mark.parametrize(
    ("desired", "delivered", "trial", "step"),
    [
        (NEW, "new", None, AcceptanceStep.ACCEPTED),
        (BAD, "new", None, AcceptanceStep.ACCEPTED),
        (BAD, "old", None, AcceptanceStep.REJECT),
        (BAD, "", None, AcceptanceStep.REJECT),
        (NEW, "old", None, AcceptanceStep.START_TRIAL),
        (NEW, "", None, AcceptanceStep.START_TRIAL),
        (NEW, "old", Trial("running"), AcceptanceStep.AWAIT_TRIAL),
        (NEW, "old", Trial("passed"), AcceptanceStep.ACCEPTED),
        (NEW, "", Trial("passed"), AcceptanceStep.ACCEPTED),
        (NEW, "old", Trial("failed", "no"), AcceptanceStep.REJECT),
        (NEW, "old", Trial("inconclusive", "Evicted"), AcceptanceStep.REPEAT_TRIAL),
        (NEW, "old", Trial("not started", "quota"), AcceptanceStep.REPEAT_TRIAL),
        (None, "old", None, AcceptanceStep.NOTHING_DESIRED),
    ],
)
def test_a_configuration_is_accepted_only_after_a_trial(
    desired: Configuration | None, delivered: str, trial: Trial | None, step: AcceptanceStep
) -> None:
    assert decide_acceptance(Facts(now=NOW, desired=desired, delivered=delivered, trial=trial)).step is step


def test_a_rejection_names_file_and_line_and_keeps_what_was_accepted_before() -> None:
    found = decide_acceptance(Facts(now=NOW, desired=BAD, delivered="old", accepted=OLD))
    assert found.message.startswith("slurm.conf:3: ")
    assert found.deliver is OLD


@pytest.mark.parametrize("delivered", ["old", "new"])
def test_settings_that_belong_to_the_operator_are_rejected_without_a_trial(delivered: str) -> None:
    refused = (Problem("slurm.conf", 3, "SlurmUser=root: the operator sets it"),)
    found = decide_acceptance(Facts(now=NOW, desired=NEW, delivered=delivered, accepted=OLD, refused=refused))
    assert found.step is AcceptanceStep.REJECT
    assert found.message == "slurm.conf:3: SlurmUser=root: the operator sets it"
    assert found.deliver is OLD


def test_a_key_that_is_not_known_is_tried_and_told_when_the_trial_fails() -> None:
    newer = Configuration("new", {"slurm.conf": "ClusterName=c\nSlurmctldHost=h\nMaxJobCont=1\n"})
    assert decide_acceptance(Facts(now=NOW, desired=newer)).step is AcceptanceStep.START_TRIAL
    assert decide_acceptance(Facts(now=NOW, desired=newer, trial=Trial("passed"))).deliver is newer
    log = 'error: Parse error in file /etc/slurm/slurm.conf line 3: "MaxJobCont=1"'
    found = decide_acceptance(Facts(now=NOW, desired=newer, trial=Trial("failed", log)))
    assert found.message == (
        'slurm.conf:3: "MaxJobCont=1"; slurm.conf:3: unknown key MaxJobCont; did you mean MaxJobCount?'
    )


def test_an_inconclusive_trial_is_cleared_after_a_pause() -> None:
    facts = Facts(now=NOW, desired=NEW, delivered="old", trial=Trial("inconclusive", "Evicted", TRIAL_PAUSE - 1))
    assert decide_acceptance(facts).kept_trial == "new"
    facts = Facts(now=NOW, desired=NEW, delivered="old", trial=Trial("inconclusive", "Evicted", TRIAL_PAUSE))
    assert decide_acceptance(facts).kept_trial == ""


def test_a_configuration_for_a_slurmctld_elsewhere_needs_no_trial() -> None:
    assert decide_acceptance(Facts(now=NOW, external=True, desired=NEW)).deliver is NEW


def test_settings_that_need_a_restart_are_named_when_the_configuration_is_accepted() -> None:
    text = "ClusterName=c\nSlurmctldHost=h\nMaxJobCount=7\nSelectType=select/linear\n"
    desired = Configuration("newer", {"slurm.conf": text})
    facts = Facts(now=NOW, desired=desired, delivered="new", accepted=NEW, trial=Trial("passed"))
    assert decide_acceptance(facts).restart == ("SelectType",)
