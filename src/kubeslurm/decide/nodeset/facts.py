"""What is known about a NodeSet when a decision starts."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from kubeslurm.api import views
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.slurm.rest.models import Node


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a decision about one NodeSet rests on; nothing is read while it is made."""

    now: datetime
    workers: tuple[Worker, ...]
    revision: str  # the hash of the revision that workers shall have
    collisions: int | None = None  # hash collisions among revisions
    startup_hashes: Mapping[str, str] = msgspec.field(default_factory=dict)  # annotation -> hash, for a pod made today
    key_waits: bool = False  # slurmctld still has the former slurm.key, and so must the workers
    hosts: tuple[views.Node, ...] = ()  # all Kubernetes nodes, where placement is ours to decide
    cooling_down: frozenset[str] = frozenset()  # Slurm names whose worker failed a moment ago
    shared_names: tuple[str, ...] = ()  # Slurm names that pods of another NodeSet claim as well

    slurm_error: str = ""  # why Slurm cannot be asked; empty when it can
    records: tuple[Node, ...] = ()  # Slurm nodes that carry this NodeSet's PodInfo while no pod of theirs exists
    absences: Mapping[str, int] = msgspec.field(default_factory=dict)  # Slurm node -> full lists in a row without it
    state_lost: bool = False  # slurmctld knows so few of the cluster's workers that it must have lost its state
    job_ends: Mapping[str, str] | None = None  # Slurm node -> when its last job must have ended; None: not known

    propagated_conditions: frozenset[str] = frozenset()  # conditions that word the reason of a cordoned Kubernetes node
    draining_conditions: frozenset[str] = frozenset()  # conditions of Kubernetes nodes that drain their workers
    drains_on_taints: bool = False  # taints of Kubernetes nodes that workers do not tolerate drain them
    mirrors_drains: bool = False  # drains made in Slurm are shown as cordons of Kubernetes nodes

    @property
    def slurm_known(self) -> bool:
        """Whether Slurm answered lately, so that `Worker.node` is true and None means absent."""
        return not self.slurm_error
