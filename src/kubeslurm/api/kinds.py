"""The kinds that we use: where the API server serves each, and the type it is decoded into."""

import builtins
from typing import Any, Generic, TypeVar

import msgspec

from kubeslurm.api import names, views
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource, SlurmResource
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.slinky.token import Token

T = TypeVar("T", bound=Resource)


class Kind(msgspec.Struct, Generic[T], frozen=True):
    """One kind of object: its address on the API server and the type it is read as."""

    group: str
    version: str
    plural: str
    kind: str
    type: builtins.type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of its subresource; no namespace means all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        parts = [root + scope, self.plural, name, subresource]
        return "/".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.kind


def slinky(plural: str, type_: type[T]) -> Kind[T]:
    """A kind of Slinky's group; the types are in `api/slinky`."""
    return Kind(names.GROUP, names.VERSION, plural, type_.__name__, type_)


def own(plural: str, type_: type[T]) -> Kind[T]:
    """A kind of our own group; the types are in `api/own`."""
    return Kind(names.OWN_GROUP, names.OWN_VERSION, plural, type_.__name__, type_)


ACCOUNTING = slinky("accountings", Accounting)
CONTROLLER = slinky("controllers", Controller)
LOGINSET = slinky("loginsets", LoginSet)
NODESET = slinky("nodesets", NodeSet)
RESTAPI = slinky("restapis", RestApi)
TOKEN = slinky("tokens", Token)

POD = Kind("", "v1", "pods", "Pod", views.Pod)
NODE = Kind("", "v1", "nodes", "Node", views.Node, namespaced=False)
SERVICE = Kind("", "v1", "services", "Service", views.Service)
SECRET = Kind("", "v1", "secrets", "Secret", views.Secret)
CONFIGMAP = Kind("", "v1", "configmaps", "ConfigMap", views.ConfigMap)
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", views.PersistentVolumeClaim)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", views.Other, namespaced=False)
SERVICE_ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount", views.Other)
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment", views.Deployment)
STATEFULSET = Kind("apps", "v1", "statefulsets", "StatefulSet", views.StatefulSet)
CONTROLLER_REVISION = Kind("apps", "v1", "controllerrevisions", "ControllerRevision", views.ControllerRevision)
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", views.PodDisruptionBudget)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease", views.Lease)
EVENT = Kind("events.k8s.io", "v1", "events", "Event", views.Other)
SERVICE_MONITOR = Kind("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor", views.Other)
CRD = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", views.Other, namespaced=False
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    views.Other,
    namespaced=False,
)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    views.Other,
    namespaced=False,
)

ALL: tuple[Kind[Any], ...] = tuple(each for each in list(globals().values()) if isinstance(each, Kind))
# Those that we define: each gets a CustomResourceDefinition, a page of documentation and admission checks.
SLURM_KINDS: tuple[Kind[Any], ...] = tuple(each for each in ALL if issubclass(each.type, SlurmResource))


def kind_of(obj: Tree | SlurmResource) -> Kind[Any]:
    """The kind of a tree, or of an object of a kind that we define; raises KeyError for one we do not know."""
    if isinstance(obj, SlurmResource):
        found = [each for each in SLURM_KINDS if each.type is type(obj)]
        name = type(obj).__name__
    else:
        name = f"{obj['apiVersion']} {obj['kind']}"
        found = [each for each in ALL if f"{each.api_version} {each.kind}" == name]
    if not found:
        raise KeyError(name)
    return found[0]
