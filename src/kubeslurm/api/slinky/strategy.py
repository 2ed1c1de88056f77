"""How a changed template reaches the workers that run already."""

from typing import Annotated, Literal

from kubeslurm.api.duration import PATTERN
from kubeslurm.api.meta import Rule, Time, Wire, defaulted, doc
from kubeslurm.api.slinky.fragments import IntOrString

UpdateType = Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"]


class RollingUpdate(Wire, frozen=True, kw_only=True):
    """How many workers may be missing while a change is rolled out."""

    maxUnavailable: Annotated[
        IntOrString,
        defaulted(
            "Workers that may be unavailable at a time: a number, or a percentage (rounded up).",
            rules=[
                Rule(
                    message="maxUnavailable must be a number of at least 1, or a percentage above 0% such as 25%",
                    rule=r"type(self) == int ? self >= 1 : self.matches('^0*[1-9][0-9]*%$')",
                )
            ],
        ),
    ] = "25%"


class ScheduledUpdate(Wire, frozen=True, kw_only=True):
    """A maintenance reservation in which the workers are updated."""

    startTime: Annotated[Time | None, doc("When the reservation starts.")] = None
    duration: Annotated[
        str,
        defaulted(
            "How long it lasts, such as 30m; zero, or at least one minute.",
            rules=[
                Rule(
                    message="scheduledUpdate.duration must be a duration of zero or at least one minute, such as 1h30m",
                    rule=(
                        f"self.matches(r'{PATTERN}') &&"
                        " (duration(self) == duration('0s') || duration(self) >= duration('1m'))"
                    ),
                )
            ],
        ),
    ] = "30m"
    flags: Annotated[
        tuple[str, ...] | None, doc("Further flags of the Slurm reservation, such as DAILY.", nullable=True)
    ] = None


class UpdateStrategy(Wire, frozen=True, kw_only=True):
    """How a changed template reaches running workers; each is drained first."""

    type: Annotated[
        UpdateType,
        defaulted(
            "RollingUpdate replaces them little by little, OnDelete only when a user deletes a pod, "
            "ScheduledUpdate inside a Slurm maintenance reservation."
        ),
    ] = "RollingUpdate"
    rollingUpdate: Annotated[RollingUpdate | None, doc("Settings of RollingUpdate.")] = None
    scheduledUpdate: Annotated[ScheduledUpdate | None, doc("Settings of ScheduledUpdate.")] = None

    @property
    def max_unavailable(self) -> int | str:
        return self.rollingUpdate.maxUnavailable if self.rollingUpdate else RollingUpdate().maxUnavailable


STRATEGY_RULES = (
    Rule(
        message="scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate",
        rule=(
            "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime)"
            " && has(self.scheduledUpdate.duration))"
        ),
    ),
)
