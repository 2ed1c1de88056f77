"""RestApi: slurmrestd, the REST API of Slurm."""

from typing import Annotated

from kubeslurm.api.meta import Conditions, Int32, Int64, Tree, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, CLUSTER, MESSAGE, REASON, SLURM, Column, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import ATOMIC, RAW, LocalObjectReference, PodTemplate, ServiceSpec


class RestApiSpec(Wire, frozen=True, kw_only=True):
    """Which slurmrestd pods are wanted."""

    controllerRef: Annotated[LocalObjectReference, doc("The Controller whose cluster is served.", **ATOMIC)]
    replicas: Annotated[Int32, defaulted("Number of slurmrestd pods.", minimum=0)] = 1
    slurmrestd: Annotated[
        Tree | None, doc("Overrides for the slurmrestd container (a Kubernetes Container).", **RAW)
    ] = None
    template: Annotated[PodTemplate | None, doc("Additions to the slurmrestd pods.")] = None
    service: Annotated[ServiceSpec | None, doc("The Service in front of slurmrestd (port 6820).")] = None


class RestApiStatus(Wire, frozen=True, kw_only=True):
    """How many slurmrestd pods there are, and whether they answer."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for. (extension)")] = 0
    replicas: Annotated[Int32, doc("Pods that exist. (extension)")] = 0
    readyReplicas: Annotated[Int32, doc("Pods that are ready. (extension)")] = 0
    slurmVersion: Annotated[str, doc("Release of the running slurmrestd. (extension)")] = ""
    conditions: Conditions = ()


class RestApi(SlurmResource, frozen=True, kw_only=True):
    """Slurm's REST API (slurmrestd); the operator itself talks to Slurm through it."""

    definition = Definition(
        short_names=("slurmrestd",),
        columns=(
            Column("REPLICAS", ".status.replicas"),
            Column("READY", ".status.readyReplicas"),
            REASON,
            SLURM,
            CLUSTER,
            MESSAGE,
            AGE,
        ),
    )

    spec: Annotated[RestApiSpec, doc("")]
    status: Annotated[RestApiStatus, doc("")] = RestApiStatus()

    @property
    def controller_key(self) -> tuple[str, str]:
        """Key of the Controller this RestApi serves."""
        return (self.namespace, self.spec.controllerRef.name)
