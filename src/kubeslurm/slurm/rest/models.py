"""The few fields of Slurm's answers that we use, as frozen structs in Slurm's own spelling."""

from typing import Any

import msgspec

REASON_PREFIX = "slurm-operator: "

BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
# Only in these base states can slurmctld know that no job is on the node; UNKNOWN or ERROR say nothing.
SETTLED = frozenset({"IDLE", "DOWN"})


class Number(msgspec.Struct, frozen=True):
    """Slurm's optional number: unset and infinite are flags beside the value."""

    set: bool = False
    infinite: bool = False
    number: float = 0

    @property
    def value(self) -> int | None:
        """The number, or None when it is unset or infinite."""
        return int(self.number) if self.set and not self.infinite else None


UNSET_NUMBER = Number()


class Node(msgspec.Struct, frozen=True):
    """One node record; `state` holds the base state and its flags in upper case."""

    name: str
    state: tuple[str, ...] = ()
    reason: str = ""
    comment: str = ""
    extra: str = ""
    topology: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    hostname: str = ""
    address: str = ""
    version: str = ""
    alloc_cpus: int = 0
    slurmd_start_time: Number = UNSET_NUMBER
    reason_changed_at: Number = UNSET_NUMBER

    @property
    def busy(self) -> bool:
        """Whether a job runs here or is being cleaned up."""
        return self.alloc_cpus > 0 or not BUSY.isdisjoint(self.state)

    @property
    def drain(self) -> bool:
        """Whether the node takes no new jobs because somebody drained it."""
        return "DRAIN" in self.state and "UNDRAIN" not in self.state

    @property
    def drained(self) -> bool:
        """Whether Slurm says positively that no job is here and none will come."""
        return self.drain and not self.busy and not SETTLED.isdisjoint(self.state)

    @property
    def draining(self) -> bool:
        """Whether the node is drained but not yet known to be empty."""
        return self.drain and not self.drained

    @property
    def down(self) -> bool:
        return "DOWN" in self.state

    @property
    def idle(self) -> bool:
        """Whether a job could start here now."""
        hindered = self.drain or self.down or self.busy or self.not_responding or self.invalid
        return "IDLE" in self.state and not hindered

    @property
    def not_responding(self) -> bool:
        return "NOT_RESPONDING" in self.state

    @property
    def invalid(self) -> bool:
        """Whether slurmd registered with less than the record promises; only deleting the record helps."""
        return "INVALID_REG" in self.state

    @property
    def ours(self) -> bool:
        """Whether the reason was written by the operator, so that the operator may lift it."""
        return self.reason.startswith(REASON_PREFIX)


class NodeUpdate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change to one or many nodes; a field left at None is not touched."""

    state: tuple[str, ...] | None = None
    reason: str | None = None
    comment: str | None = None
    extra: str | None = None
    topology_str: str | None = None
    features: tuple[str, ...] | None = None
    features_act: tuple[str, ...] | None = None

    @classmethod
    def drain(cls, reason: str) -> "NodeUpdate":
        return cls(state=("DRAIN",), reason=_prefixed(reason))

    @classmethod
    def down(cls, reason: str) -> "NodeUpdate":
        """Fences: Slurm requeues or fails the jobs of the node at once."""
        return cls(state=("DOWN",), reason=_prefixed(reason))

    @classmethod
    def resume(cls) -> "NodeUpdate":
        return cls(state=("RESUME",))


def _prefixed(reason: str) -> str:
    return reason if reason.startswith(REASON_PREFIX) else REASON_PREFIX + reason


class JobState(msgspec.Struct, frozen=True):
    """A row of the light job list; tasks of an array that wait all carry the array's id."""

    job_id: int
    state: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """One job, read singly."""

    job_id: int
    name: str = ""
    partition: str = ""
    job_state: tuple[str, ...] = ()
    nodes: str = ""
    requeue: bool = False
    start_time: Number = UNSET_NUMBER
    time_limit: Number = UNSET_NUMBER


class Ping(msgspec.Struct, frozen=True):
    """One slurmctld as slurmrestd sees it."""

    hostname: str = ""
    responding: bool = False
    status: str = ""


class LiveConf(msgspec.Struct, frozen=True):
    """The configuration that slurmctld runs with; `read_at` moves at every start and reconfigure, in whole seconds."""

    values: dict[str, Any]
    read_at: int = 0
    checksum: int = 0
    path: str = ""
    version: str = ""


class Nodes(msgspec.Struct, frozen=True):
    """A full node list and the time to ask with for the next one."""

    nodes: tuple[Node, ...]
    last_update: int
