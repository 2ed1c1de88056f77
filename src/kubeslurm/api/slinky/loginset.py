"""LoginSet: pods that users log into by SSH to submit jobs."""

from typing import Annotated

from kubeslurm.api.meta import Conditions, Int32, Int64, Rule, Tree, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, CLUSTER, MESSAGE, REASON, Column, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import (
    ATOMIC,
    RAW,
    IntOrString,
    LocalObjectReference,
    PodTemplate,
    SecretKeySelector,
    ServiceSpec,
)
from kubeslurm.api.slinky.rules import CONTROLLER_IMMUTABLE, CONTROLLER_NAMED


class DeploymentRollingUpdate(Wire, frozen=True, kw_only=True):
    """Bounds of a rolling update."""

    maxSurge: Annotated[IntOrString | None, doc("Pods above replicas that may exist meanwhile.")] = None
    maxUnavailable: Annotated[IntOrString | None, doc("Pods below replicas that may be missing meanwhile.")] = None


class DeploymentStrategy(Wire, frozen=True, kw_only=True):
    """How a change reaches running login pods."""

    type: Annotated[str | None, doc("RollingUpdate, or Recreate.")] = None
    rollingUpdate: Annotated[DeploymentRollingUpdate | None, doc("Bounds of RollingUpdate.")] = None


class LoginSetSpec(Wire, frozen=True, kw_only=True):
    """Which login pods are wanted."""

    controllerRef: Annotated[
        LocalObjectReference,
        doc(
            "The Controller whose cluster users log into. Immutable.",
            **ATOMIC,
            rules=[CONTROLLER_NAMED, CONTROLLER_IMMUTABLE],
        ),
    ]
    replicas: Annotated[Int32, defaulted("Number of login pods.", minimum=0)] = 1
    login: Annotated[Tree | None, doc("Overrides for the login container (a Kubernetes Container).", **RAW)] = None
    initconf: Annotated[
        Tree | None, doc("Overrides for the container that prepares the configuration (a Kubernetes Container).", **RAW)
    ] = None
    template: Annotated[PodTemplate | None, doc("Additions to the login pods.")] = None
    rootSshAuthorizedKeys: Annotated[str, doc("authorized_keys of root.")] = ""
    extraSshdConfig: Annotated[str, doc("Lines appended to sshd_config.")] = ""
    sssdConfRef: Annotated[
        SecretKeySelector,
        doc(
            "The sssd.conf with which users are looked up.",
            **ATOMIC,
            rules=[
                Rule(message="sssdConfRef.name must name a Secret with an sssd.conf", rule="self.name != ''"),
            ],
        ),
    ]
    strategy: Annotated[DeploymentStrategy | None, doc("How a change reaches running pods.")] = None
    service: Annotated[ServiceSpec | None, doc("The Service in front of sshd (port 22).")] = None


class LoginSetStatus(Wire, frozen=True, kw_only=True):
    """How many login pods there are."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for. (extension)")] = 0
    replicas: Annotated[Int32, doc("Login pods that exist.")] = 0
    readyReplicas: Annotated[Int32, doc("Login pods that are ready. (extension)")] = 0
    conditions: Conditions = ()
    selector: Annotated[str, doc("Label selector of the login pods, for autoscalers.", required=True)] = ""


class LoginSet(SlurmResource, frozen=True, kw_only=True):
    """Login pods of one Slurm cluster: sshd, Slurm's commands and the users of your directory."""

    definition = Definition(
        short_names=("loginsets", "lss", "sackd"),
        columns=(
            Column("REPLICAS", ".status.replicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            CLUSTER,
            MESSAGE,
            AGE,
        ),
        scales=True,
    )

    spec: Annotated[LoginSetSpec, doc("")]
    status: Annotated[LoginSetStatus, doc("")] = LoginSetStatus()

    @property
    def controller_key(self) -> tuple[str, str]:
        """Key of the Controller this LoginSet belongs to."""
        return (self.namespace, self.spec.controllerRef.name)
