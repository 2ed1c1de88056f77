"""Which keys of a cluster the operator makes, and when a changed one may reach the daemons."""

import msgspec

from kubeslurm.api.slinky.fragments import SecretKeySelector


class KeyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one key that a Controller refers to."""

    ref: SecretKeySelector
    provided: bool = False  # the user brings it
    secret_exists: bool = False  # whatever is in it
    in_use: bool = False  # a cluster was started with it
    kept: bytes | None = None  # our copy of it


def is_made(key: KeyFacts) -> bool:
    """Whether the operator makes the key: once, and only if nobody else has or will.

    Daemons that run with a lost key would not understand one that is new: it can only be put back from our copy.
    """
    if key.provided or key.secret_exists or not key.ref.name:
        return False
    return key.kept is not None or not key.in_use


class KeyChange(msgspec.Struct, frozen=True, kw_only=True):
    """A slurm.key that differs from the one slurmctld was given."""

    started: bool  # the slurmctld container has run; one that has not will read the new key in any case
    jobs: int | None  # that hold nodes; None: Slurm cannot be asked
    token_refused: bool = False  # slurmctld does not know the former JWT key: it has started with the new Secret


def waits(change: KeyChange) -> bool:
    """Whether the new key is held back: a worker with another key than slurmctld is given up with its jobs."""
    return change.started and not change.token_refused and change.jobs != 0
