# ruff: noqa: N818 (named after the cause, without "Error")
"""Failures of calls to Slurm, one class per cause."""


class SlurmError(Exception):
    """Base class of all failures of a call to Slurm."""


class Unreachable(SlurmError):
    """No slurmrestd answered in time, or the slurmctld behind it did not."""


class NotServed(Unreachable):
    """The server does not have this endpoint: another release, or a proxy in between. It tells nothing about Slurm."""


class WrongCluster(Unreachable):
    """Another cluster's slurmrestd answered, at an address that was ours: what it says is not about our nodes."""


class Unauthorized(SlurmError):
    """Slurm did not accept the token: wrong key, expired, or a wrong clock."""


class NotFound(SlurmError):
    """Slurm answered that it does not know the node or job."""


class Refused(SlurmError):
    """Slurm understood the request and refused it; `number` is Slurm's error number."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{text} (Slurm error {number})" if number else text)
        self.number = number
        self.text = text
