"""Keys: who makes them, and when a changed one goes to the daemons."""

import pytest

from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.decide.keys import KeyChange, KeyFacts, is_made, waits

REF = SecretKeySelector(name="keys", key="slurm.key")


@pytest.mark.parametrize(
    ("facts", "made"),
    [
        (KeyFacts(ref=REF), True),
        (KeyFacts(ref=REF, secret_exists=True), False),
        (KeyFacts(ref=REF, provided=True), False),
        (KeyFacts(ref=REF, provided=True, kept=b"copy"), False),
        # Daemons that run would not understand another key.
        (KeyFacts(ref=REF, in_use=True), False),
        (KeyFacts(ref=REF, in_use=True, kept=b"copy"), True),
        (KeyFacts(ref=REF, in_use=True, kept=b"copy", secret_exists=True), False),
        (KeyFacts(ref=SecretKeySelector(key="slurm.key")), False),
    ],
)
def test_a_key_is_made_only_if_nobody_has_or_brings_one(facts: KeyFacts, made: bool) -> None:
    assert is_made(facts) is made


@pytest.mark.parametrize(
    ("change", "held"),
    [
        (KeyChange(started=True, jobs=0), False),
        (KeyChange(started=True, jobs=1), True),
        # Not to know is no reason to go on.
        (KeyChange(started=True, jobs=None), True),
        (KeyChange(started=False, jobs=None), False),
        (KeyChange(started=True, jobs=None, token_refused=True), False),
    ],
)
def test_a_changed_key_waits_unless_it_is_certain_that_no_job_runs(change: KeyChange, held: bool) -> None:
    assert waits(change) is held
