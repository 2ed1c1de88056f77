"""A worker: its pod, its Slurm node and its Kubernetes node."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import attrgetter

import msgspec

from kubeslurm.api import names, views
from kubeslurm.slurm.rest.models import Node

# Ends the operator's cause on a pod that a user had cordoned before, so that the user's cordon stays when ours ends.
ALSO_USER = "+user"
STATE_PREFIX = "SlurmNodeState"  # pod conditions that show the state of the Slurm node
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
_PHASES = {"Unknown": 1, "Running": 2}  # any other phase goes first
_COST = re.compile(r"^(0|-?[1-9][0-9]*)$")
_ORDINAL = re.compile(r"-([0-9]+)$")


class PodInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a Slurm node's comment says about the pod behind it; other tools read it too.

    The last two fields are ours: a restarted worker differs in them from the one that a running job was started on.
    """

    namespace: str = ""
    podName: str = ""  # noqa: N815
    node: str = ""
    nodeSetName: str = ""  # noqa: N815
    nodeSetUID: str = ""  # noqa: N815
    podUID: str = ""  # noqa: N815
    containerID: str = ""  # noqa: N815

    @classmethod
    def parse(cls, comment: str) -> "PodInfo":
        """Reads a comment; one that is not ours reads as empty."""
        try:
            return msgspec.json.decode(comment, type=cls)
        except msgspec.MsgspecError:
            return cls()

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class Worker(msgspec.Struct, frozen=True, dict=True):
    """One worker pod, the Slurm node it serves (None: unknown or not there) and the Kubernetes node below it.

    All three are frozen, so what follows from them is worked out once; passes share a worker until one of them changes.
    """

    pod: views.Pod
    node: Node | None = None
    host: views.Node | None = None

    @cached_property
    def name(self) -> str:
        return self.pod.metadata.name

    @cached_property
    def key(self) -> str:
        """Namespace and name, as reasons and messages show it."""
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"

    @cached_property
    def slurm_name(self) -> str:
        """The name of the Slurm node; empty for a hostNetwork pod that has no node yet."""
        spec = self.pod.spec
        if self.mode == "DaemonSet":
            return spec.hostname
        return spec.nodeName if spec.hostNetwork else spec.hostname or self.name

    @cached_property
    def claim(self) -> str:
        """Namespace, cluster and Slurm node, as claims to a node's name are filed."""
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.labels.get(names.LABEL_CLUSTER)}/{self.slurm_name}"

    @cached_property
    def mode(self) -> str:
        return self.pod.metadata.labels.get(names.LABEL_SCALING_MODE, "StatefulSet")

    @cached_property
    def revision(self) -> str:
        return self.pod.metadata.labels.get(names.LABEL_REVISION, "")

    @cached_property
    def ordinal(self) -> int | None:
        found = _ORDINAL.search(self.name) if self.mode == "StatefulSet" else None
        return int(found[1]) if found else None

    @cached_property
    def terminating(self) -> bool:
        return self.pod.deleting

    @cached_property
    def finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.pod.finished

    @cached_property
    def never_started(self) -> bool:
        """Whether slurmd has never run in this pod, so that no job can be there."""
        status = self.pod.container_status(names.SLURMD)
        # Without a node nobody could have started anything; without a status the kubelet may merely lag behind.
        return not self.pod.spec.nodeName or (status is not None and not status.ever_started)

    @cached_property
    def container(self) -> str:
        """Identity of the running slurmd container; empty while none runs."""
        status = self.pod.container_status(names.SLURMD)
        if status is None or not status.state.running:
            return ""
        return status.containerID or f"restart {status.restartCount}"

    @cached_property
    def started_at(self) -> datetime | None:
        status = self.pod.container_status(names.SLURMD)
        return status.state.running.startedAt if status is not None and status.state.running else None

    @cached_property
    def noticed_at(self) -> datetime | None:
        """When this very slurmd was first noticed, by slurmctld's clock; None when nobody has put it on record."""
        text, _, container = self.pod.metadata.annotations.get(names.SLURMD_NOTICED, "").partition(" ")
        if not container or container != self.container or not text.isdecimal():
            return None
        return datetime.fromtimestamp(int(text), UTC)

    @cached_property
    def ready(self) -> bool:
        return self.pod.status.phase == "Running" and self.pod.ready and not self.terminating

    @cached_property
    def ready_since(self) -> datetime | None:
        return next(
            (
                each.lastTransitionTime
                for each in self.pod.status.conditions
                if each.type == "Ready" and each.status == "True"
            ),
            None,
        )

    def available(self, now: datetime, min_ready: int) -> bool:
        """Whether it has been ready for that many seconds."""
        if not self.ready or min_ready <= 0:
            return self.ready
        return self.ready_since is not None and self.ready_since + timedelta(seconds=min_ready) <= now

    @cached_property
    def cordoned(self) -> bool:
        return self.pod.metadata.annotations.get(names.POD_CORDON) == "true"

    @cached_property
    def cause(self) -> str:
        """Why the operator cordoned this pod; empty when it did not."""
        text = self.pod.metadata.annotations.get(names.POD_CORDON_BY, "") if self.cordoned else ""
        return text.removesuffix(ALSO_USER)

    @cached_property
    def user_cordoned(self) -> bool:
        """Whether a user cordoned this pod, before the operator did or without it."""
        text = self.pod.metadata.annotations.get(names.POD_CORDON_BY, "")
        return self.cordoned and (not text or text.endswith(ALSO_USER))

    @cached_property
    def cost(self) -> int:
        """The deletion cost a user gave it; text that is no plain number counts as none."""
        text = self.pod.metadata.annotations.get(names.POD_DELETION_COST, "0")
        return int(text) if _COST.match(text) else 0

    @cached_property
    def deadline(self) -> datetime:
        """When its last job must have ended; long ago when it has none, and never while nobody knows."""
        text = self.pod.metadata.annotations.get(names.POD_DEADLINE, "")
        unknown = NEVER if self.node is not None and self.node.busy else EPOCH
        try:
            return msgspec.convert(text, datetime) if text else unknown
        except msgspec.ValidationError:
            return unknown

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """How dispensable it is: the smaller, the sooner it goes when some must."""
        created = self.pod.metadata.creationTimestamp
        ready_since = self.ready_since if self.ready else None
        return (
            bool(self.pod.spec.nodeName),
            _PHASES.get(self.pod.status.phase, 0),
            self.ready,
            self.cost,
            self.deadline,
            not self.cordoned,
            -(self.ordinal if self.ordinal is not None else -1),
            -(ready_since or EPOCH).timestamp(),
            -created.timestamp() if created else float("-inf"),
        )

    @cached_property
    def forced(self) -> bool:
        """Whether a user has annotated the pod so that its deletion does not wait for its jobs."""
        return self.pod.metadata.annotations.get(names.FORCE_DELETE) == "true"

    @cached_property
    def info(self) -> str:
        """What the comment of its Slurm node shall say."""
        pod, owner = self.pod, self.pod.metadata.controller
        return PodInfo(
            namespace=pod.metadata.namespace,
            podName=pod.metadata.name,
            node=pod.spec.nodeName,
            nodeSetName=owner.name if owner else pod.metadata.labels.get(names.LABEL_INSTANCE, ""),
            nodeSetUID=owner.uid if owner else "",
            podUID=pod.metadata.uid,
            containerID=self.container,
        ).text

    @cached_property
    def ever_registered(self) -> bool:
        """Whether Slurm has ever shown the node of this pod, so that a job may have been there."""
        return any(each.type.startswith(STATE_PREFIX) for each in self.pod.status.conditions)

    @cached_property
    def protected(self) -> bool:
        """Whether the disruption budget protects it from eviction."""
        return self.pod.metadata.labels.get(names.LABEL_POD_PROTECT) == "true"

    @cached_property
    def was_busy(self) -> bool:
        """Whether it ran jobs when Slurm last told about its node; pods of another operator only have the label."""
        return self.pod.metadata.annotations.get(names.POD_BUSY) == "true" or self.protected


def by_dispensability(workers: Iterable[Worker]) -> list[Worker]:
    """The most dispensable first: not ready yet, then the cheapest, idle or soonest free, cordoned, the youngest."""
    return sorted(workers, key=attrgetter("rank"))
