"""Controller: one Slurm cluster's slurmctld and its configuration."""

from typing import Annotated

from kubeslurm.api.meta import Conditions, Int32, Int64, Rule, Tree, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, MESSAGE, READY, REASON, SLURM, Column, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import (
    ATOMIC,
    RAW,
    ConfigMapKeySelector,
    ExternalConfig,
    LabelSelector,
    LocalObjectReference,
    Metrics,
    NamespacedObjectReference,
    PodTemplate,
    SecretKeySelector,
    ServiceSpec,
    TypedObjectReference,
    VolumeResources,
)
from kubeslurm.api.slinky.rules import EXTERNAL_RULES, JWT_KEY_IMMUTABLE

CLUSTER_NAME_LIMIT = 40

_Refs = tuple[Annotated[LocalObjectReference, doc("A ConfigMap.", **ATOMIC)], ...] | None


class HighAvailability(Wire, frozen=True, kw_only=True):
    """Backup slurmctlds that take over when the active one fails."""

    enabled: Annotated[bool, defaulted("Run backups.", required=True)] = False
    backups: Annotated[Int32, defaulted("How many backups besides the active slurmctld.", minimum=1)] = 1


class Persistence(Wire, frozen=True, kw_only=True):
    """Where slurmctld keeps its state across restarts: an own volume claim, or one that exists."""

    enabled: Annotated[bool, defaulted("Keep the state on a volume; false loses it with the pod.", required=True)] = (
        True
    )
    existingClaim: Annotated[str, doc("Use this PersistentVolumeClaim instead of making one.")] = ""
    accessModes: Annotated[
        tuple[str, ...], doc("Access modes of the claim.", **{"x-kubernetes-list-type": "atomic"})
    ] = ()
    resources: Annotated[VolumeResources | None, doc("Size of the claim.")] = None
    storageClassName: Annotated[str | None, doc("Storage class; the cluster's default when absent.")] = None
    selector: Annotated[LabelSelector | None, doc("Chooses among existing volumes.", **ATOMIC)] = None
    volumeName: Annotated[str, doc("Binds the claim to this volume.")] = ""
    volumeMode: Annotated[str | None, doc("Filesystem, or Block.")] = None
    volumeAttributesClassName: Annotated[str | None, doc("VolumeAttributesClass of the claim.")] = None
    dataSource: Annotated[TypedObjectReference | None, doc("A snapshot or claim to start from.", **ATOMIC)] = None
    dataSourceRef: Annotated[
        NamespacedObjectReference | None, doc("As dataSource, for any kind and other namespaces.")
    ] = None


class ControllerSpec(Wire, frozen=True, kw_only=True):
    """What the control plane of one Slurm cluster shall look like."""

    clusterName: Annotated[
        str,
        doc(
            "Slurm's ClusterName, at most 40 characters; `<namespace>_<name>` of this object when absent. Immutable.",
            rules=[
                Rule(
                    message="clusterName must be at most 40 characters, the longest name Slurm's database takes",
                    rule=f"self.size() <= {CLUSTER_NAME_LIMIT}",
                )
            ],
        ),
    ] = ""
    slurmKeyRef: Annotated[
        SecretKeySelector | None,
        doc("The shared key of auth/slurm. The Secret's name is immutable; its content may change.", **ATOMIC),
    ] = None
    jwtKeyRef: Annotated[
        SecretKeySelector | None, doc("The HS256 key that signs and checks auth/jwt tokens. Immutable.", **ATOMIC)
    ] = None
    jwtHs256KeyRef: Annotated[
        SecretKeySelector | None, doc("Old name of jwtKeyRef, which wins when both are set.", **ATOMIC)
    ] = None
    jwksKeyRef: Annotated[
        ConfigMapKeySelector | None, doc("A JWKS file with the keys of an identity provider.", **ATOMIC)
    ] = None
    accountingRef: Annotated[
        LocalObjectReference | None, doc("The Accounting object (slurmdbd) this cluster reports to.", **ATOMIC)
    ] = None
    external: Annotated[
        bool, defaulted("slurmctld runs elsewhere: make only what workers and slurmrestd need to reach it.")
    ] = False
    externalConfig: Annotated[ExternalConfig | None, doc("Where the external slurmctld listens.")] = None
    ha: Annotated[HighAvailability | None, doc("Backup slurmctlds; needs a ReadWriteMany volume.")] = None
    slurmctld: Annotated[Tree | None, doc("Overrides for the slurmctld container (a Kubernetes Container).", **RAW)] = (
        None
    )
    inplaceReconfigure: Annotated[
        bool, defaulted("Apply configuration changes by `scontrol reconfigure` instead of restarting slurmctld.")
    ] = False
    reconfigure: Annotated[
        Tree | None, doc("Overrides for the container that reconfigures (a Kubernetes Container).", **RAW)
    ] = None
    logfile: Annotated[
        Tree | None, doc("Overrides for the container that prints the log (a Kubernetes Container).", **RAW)
    ] = None
    template: Annotated[PodTemplate | None, doc("Additions to the slurmctld pod.")] = None
    extraConf: Annotated[str, doc("Lines appended to slurm.conf; a later line wins over a generated one.")] = ""
    configFileRefs: Annotated[
        _Refs, doc("ConfigMaps whose keys become files in /etc/slurm, such as gres.conf.", nullable=True)
    ] = None
    prologScriptRefs: Annotated[
        _Refs, doc("ConfigMaps with scripts that every worker runs before a job.", nullable=True)
    ] = None
    epilogScriptRefs: Annotated[
        _Refs, doc("ConfigMaps with scripts that every worker runs after a job.", nullable=True)
    ] = None
    prologSlurmctldScriptRefs: Annotated[
        _Refs, doc("ConfigMaps with scripts that slurmctld runs before a job.", nullable=True)
    ] = None
    epilogSlurmctldScriptRefs: Annotated[
        _Refs, doc("ConfigMaps with scripts that slurmctld runs after a job.", nullable=True)
    ] = None
    persistence: Annotated[Persistence | None, doc("Where slurmctld keeps its state.")] = None
    service: Annotated[ServiceSpec | None, doc("The Service in front of slurmctld (port 6817).")] = None
    metrics: Annotated[Metrics | None, doc("Prometheus metrics.")] = None

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The JWT key reference in force."""
        return self.jwtKeyRef or self.jwtHs256KeyRef

    @property
    def replicas(self) -> int:
        """How many slurmctld pods: the active one and its backups."""
        return 1 + self.ha.backups if self.ha and self.ha.enabled and not self.external else 1


class ControllerStatus(Wire, frozen=True, kw_only=True):
    """What is known about the control plane."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for.")] = 0
    slurmVersion: Annotated[str, doc("Release of the running slurmctld. (extension)")] = ""
    configHash: Annotated[str, doc("Digest of the configuration that slurmctld runs with. (extension)")] = ""
    wantedConfigHash: Annotated[
        str,
        doc(
            "Digest of the configuration it shall run with; differs from configHash while a change is under way. "
            "(extension)"
        ),
    ] = ""
    nodes: Annotated[Int32, doc("Slurm nodes registered in this cluster. (extension)")] = 0
    nodeSets: Annotated[Int32, doc("NodeSets that belong to this cluster. (extension)")] = 0
    conditions: Conditions = ()


def _persistent(self: str) -> str:
    """CEL: whether the state is kept; it is unless the user says otherwise."""
    return f"(has({self}.persistence) ? {self}.persistence.enabled : true)"


def _claim(self: str) -> str:
    """CEL: the existing claim, or nothing."""
    claim = f"{self}.persistence.existingClaim"
    return f"(has({self}.persistence) && has({claim}) ? {claim} : '')"


_RULES = (
    *EXTERNAL_RULES,
    Rule(
        message="slurm high availability (HA) mode requires existing PVC with an access mode of ReadWriteMany",
        rule=(
            "has(self.ha) && self.ha.enabled ? has(self.persistence) && self.persistence.enabled"
            " && has(self.persistence.existingClaim) && self.persistence.existingClaim.size() > 0 : true"
        ),
    ),
    Rule(
        message="slurmKeyRef.name is immutable: put a new key into the same Secret instead",
        rule=(
            "(has(self.slurmKeyRef) ? self.slurmKeyRef.name : '')"
            " == (has(oldSelf.slurmKeyRef) ? oldSelf.slurmKeyRef.name : '')"
        ),
        field=".slurmKeyRef",
    ),
    JWT_KEY_IMMUTABLE,
    Rule(
        message="persistence.enabled is immutable: state would be left behind; create a new Controller instead",
        rule=f"{_persistent('self')} == {_persistent('oldSelf')}",
        field=".persistence.enabled",
    ),
    Rule(
        message="persistence.existingClaim is immutable: state would be left behind; create a new Controller instead",
        rule=f"!{_persistent('self')} || {_claim('self')} == {_claim('oldSelf')}",
        field=".persistence.existingClaim",
    ),
)


def _name(self: str) -> str:
    """CEL: the cluster's name, empty when it is made from namespace and name."""
    return f"(has({self}.spec) && has({self}.spec.clusterName) ? {self}.spec.clusterName : '')"


def _spelled_out(plain: str, given: str) -> str:
    """CEL: whether the second cluster says the name that the first goes by.

    CEL does not see the namespace, so only the end of `<namespace>_<name>` is compared; admission compares the rest.
    """
    return f"({_name(plain)} == '' && {_name(given)}.endsWith('_' + self.metadata.name))"


_CLUSTER_NAME_IMMUTABLE = Rule(
    message="clusterName is immutable: state and accounting are filed under it; create a new Controller instead",
    rule=" || ".join(
        [f"{_name('self')} == {_name('oldSelf')}", _spelled_out("oldSelf", "self"), _spelled_out("self", "oldSelf")]
    ),
    field=".spec.clusterName",
)


class Controller(SlurmResource, frozen=True, kw_only=True):
    """The control plane of one Slurm cluster: slurmctld, its configuration, keys and state."""

    definition = Definition(
        short_names=("slurmctld",),
        columns=(READY, REASON, SLURM, Column("NODES", ".status.nodes"), MESSAGE, AGE),
        rules=(_CLUSTER_NAME_IMMUTABLE,),
    )

    spec: Annotated[ControllerSpec, doc("", rules=_RULES)] = ControllerSpec()
    status: Annotated[ControllerStatus, doc("")] = ControllerStatus()

    @property
    def cluster_name(self) -> str:
        """Slurm's ClusterName in force."""
        return self.spec.clusterName or f"{self.namespace}_{self.name}"
