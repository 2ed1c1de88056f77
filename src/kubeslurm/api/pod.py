"""The lean view of a pod: only what the operator reads, because there may be ten thousand."""

from datetime import datetime

from kubeslurm.api.meta import Condition, Wire
from kubeslurm.api.resource import Resource


class ClaimSource(Wire, frozen=True, kw_only=True):
    """The claim behind a volume."""

    claimName: str = ""


class Volume(Wire, frozen=True, kw_only=True):
    """A pod's volume; only claims are read."""

    name: str = ""
    persistentVolumeClaim: ClaimSource | None = None


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One test on a node's field."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    """The field tests of one alternative."""

    matchFields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True, kw_only=True):
    """Alternatives, of which one must match."""

    nodeSelectorTerms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Wire, frozen=True, kw_only=True):
    """Where a pod must go."""

    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None


class Affinity(Wire, frozen=True, kw_only=True):
    """The part of a pod's affinity that binds it to one node."""

    nodeAffinity: NodeAffinity | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    """The desired state of a pod."""

    nodeName: str = ""
    hostname: str = ""
    hostNetwork: bool = False
    affinity: Affinity | None = None
    volumes: tuple[Volume, ...] = ()


class Running(Wire, frozen=True, kw_only=True):
    """A container that runs."""

    startedAt: datetime | None = None


class Waiting(Wire, frozen=True, kw_only=True):
    """A container that does not run yet, and why."""

    reason: str = ""
    message: str = ""


class Terminated(Wire, frozen=True, kw_only=True):
    """A container that has ended, and how."""

    exitCode: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True, kw_only=True):
    """Exactly one of the three is set."""

    running: Running | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """The state of a container."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restartCount: int = 0
    containerID: str = ""
    image: str = ""
    state: ContainerState = ContainerState()
    lastState: ContainerState = ContainerState()

    @property
    def ever_started(self) -> bool:
        """Whether a process of this container may ever have run."""
        state = self.state
        return bool(
            self.started
            or self.containerID
            or self.restartCount
            or state.running
            or state.terminated
            or self.lastState.running
            or self.lastState.terminated
        )


class PodStatus(Wire, frozen=True, kw_only=True):
    """The state of a pod."""

    phase: str = ""
    podIP: str = ""
    conditions: tuple[Condition, ...] = ()
    containerStatuses: tuple[ContainerStatus, ...] = ()
    initContainerStatuses: tuple[ContainerStatus, ...] = ()


class Pod(Resource, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def finished(self) -> bool:
        return self.status.phase in {"Failed", "Succeeded"}

    @property
    def target_node(self) -> str:
        """The node it runs on, or the only one it may run on; empty when neither is set."""
        if self.spec.nodeName:
            return self.spec.nodeName
        affinity = self.spec.affinity and self.spec.affinity.nodeAffinity
        required = affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
        names = [
            test.values[0]
            for term in (required.nodeSelectorTerms if required else ())
            for test in term.matchFields
            if test.key == "metadata.name" and test.operator == "In" and len(test.values) == 1
        ]
        return names[0] if names else ""

    def container_status(self, name: str) -> ContainerStatus | None:
        """The status of one container, also of a sidecar among the init containers."""
        both = (*self.status.containerStatuses, *self.status.initContainerStatuses)
        return next((each for each in both if each.name == name), None)
