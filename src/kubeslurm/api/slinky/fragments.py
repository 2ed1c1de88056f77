"""Types that several kinds share: references, templates, services, metrics."""

from typing import Annotated

from kubeslurm.api.meta import Quantity, Tree, Wire, defaulted, doc

ATOMIC = {"x-kubernetes-map-type": "atomic"}
RAW = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PORT = {"minimum": 0, "maximum": 65535}
PROMETHEUS_DURATION = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}

Labels = Annotated[dict[str, str] | None, doc("Labels to add.", nullable=True)]
Annotations = Annotated[dict[str, str] | None, doc("Annotations to add.", nullable=True)]
IntOrString = Annotated[
    int | str, doc("", **{"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True})
]


class LocalObjectReference(Wire, frozen=True, kw_only=True):
    """Names an object in the same namespace."""

    name: Annotated[str, defaulted("Name of the object.")] = ""


class SecretKeySelector(Wire, frozen=True, kw_only=True):
    """Points at one key of a Secret in the same namespace."""

    name: Annotated[str, defaulted("Name of the Secret.")] = ""
    key: Annotated[str, doc("Key inside the Secret.")]
    optional: Annotated[bool | None, doc("Whether the Secret or its key may be missing.")] = None


class ConfigMapKeySelector(Wire, frozen=True, kw_only=True):
    """Points at one key of a ConfigMap in the same namespace."""

    name: Annotated[str, defaulted("Name of the ConfigMap.")] = ""
    key: Annotated[str, doc("Key inside the ConfigMap.")]
    optional: Annotated[bool | None, doc("Whether the ConfigMap or its key may be missing.")] = None


class ExternalConfig(Wire, frozen=True, kw_only=True):
    """Where a daemon listens that runs outside of this Kubernetes cluster."""

    host: Annotated[str, doc("Host name or address.")]
    port: Annotated[int, doc("TCP port.", **PORT)]


class TemplateMeta(Wire, frozen=True, kw_only=True):
    """Labels and annotations for an object that the operator makes."""

    labels: Labels = None
    annotations: Annotations = None


class PodTemplate(Wire, frozen=True, kw_only=True):
    """A user's additions to the pods that the operator makes."""

    metadata: Annotated[TemplateMeta | None, doc("Labels and annotations for the pods.")] = None
    spec: Annotated[
        Tree | None,
        doc(
            "A PodSpec merged over the operator's own: containers and initContainers are added after ours, lists with "
            "a merge key are merged by it, everything else replaces.",
            **RAW,
        ),
    ] = None

    @property
    def labels(self) -> dict[str, str]:
        return (self.metadata and self.metadata.labels) or {}

    @property
    def annotations(self) -> dict[str, str]:
        return (self.metadata and self.metadata.annotations) or {}


class ServiceSpec(Wire, frozen=True, kw_only=True):
    """How the daemon's Service is exposed."""

    metadata: Annotated[TemplateMeta | None, doc("Labels and annotations for the Service.")] = None
    spec: Annotated[
        Tree | None, doc("A Kubernetes ServiceSpec; the operator adds the daemon's port and selector to it.", **RAW)
    ] = None
    port: Annotated[int, doc("Port of the Service; 0 or absent means the daemon's usual port.", **PORT)] = 0
    nodePort: Annotated[int, doc("Port on every node, for a Service of type NodePort or LoadBalancer.", **PORT)] = 0

    @property
    def labels(self) -> dict[str, str]:
        return (self.metadata and self.metadata.labels) or {}

    @property
    def annotations(self) -> dict[str, str]:
        return (self.metadata and self.metadata.annotations) or {}


class MetricsEndpoint(Wire, frozen=True, kw_only=True):
    """One path that Prometheus scrapes."""

    path: Annotated[str, doc("HTTP path, such as /metrics/jobs.")]
    interval: Annotated[
        str, doc("How often to scrape; the group's value when absent.", pattern=PROMETHEUS_DURATION)
    ] = ""
    scrapeTimeout: Annotated[
        str, doc("How long a scrape may take; the group's value when absent.", pattern=PROMETHEUS_DURATION)
    ] = ""


class ServiceMonitor(Wire, frozen=True, kw_only=True):
    """The ServiceMonitor for the Prometheus operator."""

    enabled: Annotated[bool, defaulted("Make a ServiceMonitor, if the cluster knows that kind.")] = False
    labels: Labels = None
    annotations: Annotations = None
    interval: Annotated[str, doc("How often to scrape, such as 30s.", pattern=PROMETHEUS_DURATION)] = ""
    scrapeTimeout: Annotated[str, doc("How long a scrape may take, such as 25s.", pattern=PROMETHEUS_DURATION)] = ""
    endpoints: Annotated[
        tuple[MetricsEndpoint, ...] | None,
        doc("Paths to scrape; jobs, nodes, partitions and scheduler when absent.", nullable=True),
    ] = None


class Metrics(Wire, frozen=True, kw_only=True):
    """Prometheus metrics of slurmctld."""

    enabled: Annotated[bool, defaulted("Let slurmctld serve OpenMetrics on its own port.")] = False
    serviceMonitor: Annotated[ServiceMonitor | None, doc("A ServiceMonitor that scrapes them.", nullable=True)] = None


class TypedObjectReference(Wire, frozen=True, kw_only=True):
    """An object that a volume is filled from."""

    apiGroup: Annotated[str, doc("API group; absent for the core group.")] = ""
    kind: Annotated[str, doc("Kind of the object.")]
    name: Annotated[str, doc("Name of the object.")]


class NamespacedObjectReference(TypedObjectReference, frozen=True, kw_only=True):
    """As a typed reference, possibly into another namespace."""

    namespace: Annotated[str, doc("Namespace of the object; needs a ReferenceGrant there.")] = ""


class SelectorRequirement(Wire, frozen=True, kw_only=True):
    """One test on a label."""

    key: Annotated[str, doc("Label key.")]
    operator: Annotated[str, doc("In, NotIn, Exists or DoesNotExist.")]
    values: Annotated[tuple[str, ...], doc("Values for In and NotIn.", **{"x-kubernetes-list-type": "atomic"})] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    """Chooses objects by their labels."""

    matchLabels: Annotated[dict[str, str] | None, doc("Labels that must have these values.")] = None
    matchExpressions: Annotated[
        tuple[SelectorRequirement, ...], doc("Tests that must all hold.", **{"x-kubernetes-list-type": "atomic"})
    ] = ()


class VolumeResources(Wire, frozen=True, kw_only=True):
    """Size of a volume."""

    requests: Annotated[
        dict[str, Annotated[Quantity, doc("", **QUANTITY)]] | None,
        doc("What the volume must offer, such as storage: 4Gi."),
    ] = None
    limits: Annotated[
        dict[str, Annotated[Quantity, doc("", **QUANTITY)]] | None, doc("What the volume may grow to.")
    ] = None
