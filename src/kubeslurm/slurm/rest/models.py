"""The fields of Slurm's answers that are used, as frozen structs in Slurm's spelling."""

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
    address: str = ""
    reason: str = ""
    comment: str = ""
    extra: str = ""
    topology: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
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
    def down(self) -> bool:
        return "DOWN" in self.state

    @property
    def not_responding(self) -> bool:
        return "NOT_RESPONDING" in self.state

    @property
    def invalid(self) -> bool:
        """Whether slurmd registered with less than its record says; only deleting the record helps."""
        return "INVALID_REG" in self.state

    @property
    def ours(self) -> bool:
        """Whether the operator wrote the reason, and so may remove it."""
        return self.reason.startswith(REASON_PREFIX)


class NodeUpdate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change to one or many nodes; a field that is None is not changed."""

    state: tuple[str, ...] | None = None
    reason: str | None = None
    comment: str | None = None
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
    """A row of `jobs/state`; the pending tasks of an array all have the array's id."""

    job_id: int
    state: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """One job; of a pending array, all tasks that have not started."""

    job_id: int
    name: str = ""
    user_name: str = ""
    account: str = ""
    partition: str = ""  # several, separated by commas, while the job is pending
    qos: str = ""
    job_state: tuple[str, ...] = ()
    state_reason: str = ""
    state_description: str = ""
    priority: Number = UNSET_NUMBER  # 0: held
    submit_time: Number = UNSET_NUMBER
    eligible_time: Number = UNSET_NUMBER
    start_time: Number = UNSET_NUMBER  # expected, while the job is pending
    time_limit: Number = UNSET_NUMBER  # minutes
    requeue: bool = False
    nodes: str = ""
    node_count: Number = UNSET_NUMBER
    cpus: Number = UNSET_NUMBER
    tres_req_str: str = ""
    features: str = ""
    licenses: str = ""
    resv_name: str = ""
    dependency: str = ""
    array_job_id: Number = UNSET_NUMBER
    array_task_id: Number = UNSET_NUMBER
    array_task_string: str = ""
    het_job_id: Number = UNSET_NUMBER
    het_job_offset: Number = UNSET_NUMBER


class Association(msgspec.Struct, frozen=True):
    """A user's right to run jobs under an account, with the QoS that it allows."""

    account: str
    user: str
    cluster: str = ""
    partition: str = ""
    qos: tuple[str, ...] = ()
    is_default: bool = False


class Ping(msgspec.Struct, frozen=True):
    """One slurmctld as slurmrestd sees it."""

    responding: bool = False


class RunningConf(msgspec.Struct, frozen=True):
    """The configuration that slurmctld runs with: its settings, the checksum of slurm.conf, and when it was read."""

    values: dict[str, Any]
    checksum: int = 0
    read_at: int = 0  # whole seconds; changes with every start and reconfigure


class Nodes(msgspec.Struct, frozen=True):
    """A full list of nodes, and the `update_time` to ask for the next one with."""

    nodes: tuple[Node, ...]
    last_update: int
