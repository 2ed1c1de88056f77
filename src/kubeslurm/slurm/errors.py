# ruff: noqa: N818 (causes, named as they are said)
"""What can go wrong between us and Slurm, by cause."""


class SlurmError(Exception):
    """Base of all failures of a call to Slurm."""


class Unreachable(SlurmError):
    """No slurmrestd answered in time, or the slurmctld behind it did not."""


class NotServed(Unreachable):
    """What answered does not serve this address: another release, or a proxy in between. Says nothing of Slurm."""


class Unauthorized(SlurmError):
    """Slurm did not accept our token: wrong key, expired, or a clock that is off."""


class NotFound(SlurmError):
    """Slurm answered and does not know the node or job."""


class Refused(SlurmError):
    """Slurm understood the request and said no; `number` is Slurm's own error number."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{text} (Slurm error {number})" if number else text)
        self.number = number
        self.text = text
