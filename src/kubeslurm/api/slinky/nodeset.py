"""NodeSet: workers of one shape, each a pod that runs slurmd and is one Slurm node."""

from typing import Annotated, Literal

from kubeslurm.api.duration import PATTERN
from kubeslurm.api.meta import Conditions, Int32, Int64, Rule, Tree, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, CLUSTER, MESSAGE, REASON, Column, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import ATOMIC, RAW, LocalObjectReference, PodTemplate, SecretKeySelector
from kubeslurm.api.slinky.rules import CONTROLLER_IMMUTABLE, CONTROLLER_NAMED
from kubeslurm.api.slinky.strategy import STRATEGY_RULES, UpdateStrategy, UpdateType

HOSTNAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-*$"

ScalingMode = Literal["DaemonSet", "StatefulSet"]
Retention = Literal["Retain", "Delete"]
Prune = Literal["Never", "NodeNotFound"]
DrainPolicy = Literal["Wait", "Requeue", "Cancel"]


_HOSTNAME_SCHEMA: Tree = {
    "type": "string",
    "nullable": True,
    "description": "Prefix of the Slurm node names, such as `gpu-`; the pod's name when absent.",
    "x-kubernetes-validations": [
        {
            "message": (
                "template.spec.hostname must be a DNS name of lower-case letters, digits, dots and dashes;"
                " it may end in a dash, as the ordinal follows it"
            ),
            "rule": f"self == '' || (self.size() <= 253 && self.matches(r'{HOSTNAME}'))",
        }
    ],
}


class WorkerTemplate(PodTemplate, frozen=True, kw_only=True):
    """A user's additions to worker pods."""

    spec: Annotated[
        Tree | None,
        doc(
            "A PodSpec merged over the operator's own: containers and initContainers are added after ours, lists with "
            "a merge key are merged by it, everything else replaces. `hostname` is the prefix of the Slurm node names.",
            **RAW,
            properties={"hostname": _HOSTNAME_SCHEMA},
        ),
    ] = None


class Ssh(Wire, frozen=True, kw_only=True):
    """SSH into the workers, for users who have a job there."""

    enabled: Annotated[bool, defaulted("Run sshd in the worker pods.", required=True)] = False
    extraSshdConfig: Annotated[str, doc("Lines appended to sshd_config.")] = ""
    sssdConfRef: Annotated[SecretKeySelector, doc("The sssd.conf with which users are looked up.", **ATOMIC)]


class Partition(Wire, frozen=True, kw_only=True):
    """A partition made of exactly the nodes of this NodeSet."""

    enabled: Annotated[bool, defaulted("Make the partition, named like the NodeSet's Slurm name.", required=True)] = (
        False
    )
    config: Annotated[
        str, doc("Options of the partition line, such as `State=UP MaxTime=UNLIMITED`.", pattern=r"^[^\n]+$")
    ] = ""


class ClaimRetention(Wire, frozen=True, kw_only=True):
    """What becomes of volume claims."""

    whenDeleted: Annotated[Retention, defaulted("When the NodeSet is deleted.")] = "Retain"
    whenScaled: Annotated[Retention, defaulted("When a worker is scaled in.")] = "Retain"


class Drain(Wire, frozen=True, kw_only=True):
    """How long a worker that must go may keep its jobs, and what happens then."""

    policy: Annotated[
        DrainPolicy,
        defaulted(
            "Wait lets every job end by itself, however long it takes; Requeue puts jobs that still run at the "
            "deadline back into the queue; Cancel ends them."
        ),
    ] = "Wait"
    deadline: Annotated[
        str | None,
        doc(
            "How long to wait after the drain began, such as 4h; needed by Requeue and Cancel.",
            rules=[
                Rule(
                    message="drain.deadline must be a duration such as 30m or 4h",
                    rule=f"self.matches(r'{PATTERN}')",
                )
            ],
        ),
    ] = None


_SSH_RULES = (
    Rule(
        message="ssh.sssdConfRef.name must name a Secret when ssh.enabled is true",
        rule="!self.enabled || self.sssdConfRef.name != ''",
    ),
)
_DRAIN_RULES = (
    Rule(
        message="drain.deadline must be set when drain.policy is Requeue or Cancel",
        rule="self.policy == 'Wait' || has(self.deadline)",
    ),
)


class NodeSetSpec(Wire, frozen=True, kw_only=True):
    """Which workers are wanted, and how they are scaled, updated and drained."""

    controllerRef: Annotated[
        LocalObjectReference,
        doc(
            "The Controller whose cluster the workers join. Immutable.",
            **ATOMIC,
            rules=[CONTROLLER_NAMED, CONTROLLER_IMMUTABLE],
        ),
    ]
    replicas: Annotated[
        Int32, defaulted("Number of workers in StatefulSet mode; ignored in DaemonSet mode.", minimum=0)
    ] = 1
    scalingMode: Annotated[
        ScalingMode,
        defaulted("StatefulSet runs `replicas` workers with ordinals; DaemonSet one worker on every matching node."),
    ] = "StatefulSet"
    slurmd: Annotated[Tree | None, doc("Overrides for the slurmd container (a Kubernetes Container).", **RAW)] = None
    ssh: Annotated[Ssh | None, doc("SSH into the workers.", rules=_SSH_RULES)] = None
    logfile: Annotated[
        Tree | None, doc("Overrides for the container that prints the log (a Kubernetes Container).", **RAW)
    ] = None
    template: Annotated[WorkerTemplate | None, doc("Additions to the worker pods.")] = None
    extraConf: Annotated[
        str,
        doc(
            "Space-separated Key=Value pairs that each worker registers with, such as `Gres=gpu:8 Features=h100`.",
            rules=[
                Rule(
                    message="extraConf must be Key=Value pairs separated by blanks, such as Gres=gpu:8 Weight=10",
                    rule=r"self.matches(r'^\s*(\S*=\S*(\s+|$))*$')",
                )
            ],
        ),
    ] = ""
    partition: Annotated[Partition | None, doc("A partition of exactly these workers.")] = None
    volumeClaimTemplates: Annotated[
        tuple[Tree, ...] | None,
        doc(
            "PersistentVolumeClaims made for each worker. Immutable.",
            type="array",
            items=RAW,
            nullable=True,
            **{"x-kubernetes-list-type": "atomic"},
        ),
    ] = None
    updateStrategy: Annotated[
        UpdateStrategy | None, doc("How changes reach running workers.", rules=STRATEGY_RULES)
    ] = None
    revisionHistoryLimit: Annotated[Int32, defaulted("How many old revisions to keep.", minimum=0)] = 0
    persistentVolumeClaimRetentionPolicy: Annotated[
        ClaimRetention | None, doc("What becomes of the workers' volume claims.")
    ] = None
    minReadySeconds: Annotated[Int32, doc("How long a worker must be ready to count as available.", minimum=0)] = 0
    ordinalPadding: Annotated[int, defaulted("Width of the ordinals, padded with zeros.", minimum=0)] = 0
    pinToNode: Annotated[
        bool, defaulted("Bring a worker back on the Kubernetes node it ran on before (StatefulSet mode).")
    ] = False
    workloadDisruptionProtection: Annotated[bool, defaulted("Refuse evictions of workers that run jobs.")] = True
    pruneSlurmNodeRecords: Annotated[
        Prune, defaulted("NodeNotFound deletes Slurm nodes whose Kubernetes node is gone (DaemonSet mode).")
    ] = "Never"
    oversubscribeNode: Annotated[bool, defaulted("Allow several workers on one Kubernetes node.")] = False
    taintKubeNodes: Annotated[bool | None, doc("From older releases; accepted and ignored.")] = None
    paused: Annotated[bool, doc("Roll out no change while true; scaling and repair go on. (extension)")] = False
    drain: Annotated[
        Drain | None,
        doc("What to do with jobs on workers that must go; wait for them when absent. (extension)", rules=_DRAIN_RULES),
    ] = None

    @property
    def update_type(self) -> UpdateType:
        return self.updateStrategy.type if self.updateStrategy else "RollingUpdate"

    @property
    def retention(self) -> ClaimRetention:
        return self.persistentVolumeClaimRetentionPolicy or ClaimRetention()


class NodeSetStatus(Wire, frozen=True, kw_only=True):
    """How many workers there are and what state they are in."""

    replicas: Annotated[Int32, doc("Worker pods that exist.")] = 0
    updatedReplicas: Annotated[Int32, doc("Worker pods of the newest revision.")] = 0
    readyReplicas: Annotated[Int32, doc("Worker pods that are ready.")] = 0
    availableReplicas: Annotated[Int32, doc("Worker pods that have been ready for minReadySeconds.")] = 0
    unavailableReplicas: Annotated[Int32, doc("Worker pods that are not available.")] = 0
    desired: Annotated[Int32, doc("Workers that should exist.")] = 0
    slurmIdle: Annotated[Int32, doc("Slurm nodes that are idle.")] = 0
    slurmAllocated: Annotated[Int32, doc("Slurm nodes that run jobs.")] = 0
    slurmDown: Annotated[Int32, doc("Slurm nodes that are down.")] = 0
    slurmDrain: Annotated[Int32, doc("Slurm nodes that are drained or draining.")] = 0
    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for.")] = 0
    nodeSetHash: Annotated[str, doc("Hash of the newest revision.", required=True)] = ""
    collisionCount: Annotated[Int32 | None, doc("Counts hash collisions of revisions.")] = None
    conditions: Conditions = ()
    ordinalToNode: Annotated[
        dict[str, str] | None, doc("With pinToNode: the Kubernetes node of each ordinal.", nullable=True)
    ] = None
    selector: Annotated[str, doc("Label selector of the worker pods, for autoscalers.", required=True)] = ""


def _claims(self: str) -> str:
    """CEL: the claim templates; none and an empty list are the same, and CEL takes null for none."""
    return f"(has({self}.volumeClaimTemplates) ? {self}.volumeClaimTemplates : [])"


_RULES = (
    Rule(
        message="volumeClaimTemplates is immutable: add a second NodeSet with the new claims, then scale this one in",
        rule=f"{_claims('self')} == {_claims('oldSelf')}",
        field=".volumeClaimTemplates",
    ),
)


class NodeSet(SlurmResource, frozen=True, kw_only=True):
    """A set of Slurm workers of one shape; each pod runs slurmd and is one Slurm node."""

    definition = Definition(
        short_names=("nodesets", "nss", "slurmd"),
        columns=(
            Column("DESIRED", ".status.desired"),
            Column("REPLICAS", ".status.replicas"),
            Column("UPDATED", ".status.updatedReplicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            Column("IDLE", ".status.slurmIdle", priority=1),
            Column("ALLOCATED", ".status.slurmAllocated", priority=1),
            Column("DOWN", ".status.slurmDown", priority=1),
            Column("DRAIN", ".status.slurmDrain", priority=1),
            CLUSTER,
            MESSAGE,
            AGE,
        ),
        scales=True,
    )

    spec: Annotated[NodeSetSpec, doc("", rules=_RULES)]
    status: Annotated[NodeSetStatus, doc("")] = NodeSetStatus()

    @property
    def controller_key(self) -> tuple[str, str]:
        """Key of the Controller this NodeSet belongs to."""
        return (self.namespace, self.spec.controllerRef.name)

    @property
    def hostname_prefix(self) -> str:
        """`template.spec.hostname`, or nothing."""
        template = self.spec.template
        return str((template and template.spec and template.spec.get("hostname")) or "")

    @property
    def slurm_name(self) -> str:
        """Name of this set in Slurm (NodeSet=, Feature=, PartitionName=)."""
        parts = self.hostname_prefix.split()
        return (parts[0].strip("-") if parts else "") or self.name
