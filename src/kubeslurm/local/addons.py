"""Objects that every cluster starts with: cluster DNS, storage classes, rights of the control plane's own users."""

from kubeslurm.local import network
from kubeslurm.local.api import Tree
from kubeslurm.local.nodespec import NodeSpec

PROVISIONER = "kubeslurm.dev/local"
DEFAULT_CLASS = "standard"
SHARED_CLASS = "shared"
FAKE = "kwok.x-k8s.io/node"


def objects() -> dict[str, Tree]:
    """All of them, by path."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    services = "/api/v1/namespaces/kube-system/services"
    slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
    return {
        f"{rbac}/clusterroles/system:coredns": _dns_role(),
        f"{rbac}/clusterrolebindings/system:coredns": _binding("system:coredns", "system:coredns"),
        f"{rbac}/clusterrolebindings/kubeslurm:kubelet-api": _binding(
            "kubeslurm:kubelet-api", "system:kubelet-api-admin", "kube-apiserver-kubelet-client"
        ),
        f"{services}/kube-dns": _dns_service(),
        f"{slices}/kube-dns": _dns_endpoints(),
        f"/apis/storage.k8s.io/v1/storageclasses/{DEFAULT_CLASS}": _storage_class(DEFAULT_CLASS, default=True),
        f"/apis/storage.k8s.io/v1/storageclasses/{SHARED_CLASS}": _storage_class(SHARED_CLASS, default=False),
    }


def fake_name(number: int) -> str:
    return f"fake-{number}"


def is_fake_name(name: str) -> bool:
    return name.startswith("fake-") and name.removeprefix("fake-").isdigit()


def fake_node(number: int) -> Tree:
    """A node that only exists on paper; kwok plays its kubelet."""
    name = fake_name(number)
    size = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE: "fake"},
            "labels": {"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "spec": {"taints": [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": size, "allocatable": size},
    }


def node_patch(spec: NodeSpec, node: Tree) -> Tree:
    """What is missing on a node of labels and taints, as a merge patch; empty when nothing is."""
    patch: Tree = {}
    labels = node["metadata"].get("labels", {})
    if missing := {key: value for key, value in spec.labels.items() if labels.get(key) != value}:
        patch["metadata"] = {"labels": missing}
    present = node["spec"].get("taints", [])
    wanted = [{"key": t.key, "value": t.value, "effect": t.effect} for t in spec.taints]
    seen = {(t["key"], t["effect"]) for t in present}
    if absent := [taint for taint in wanted if (taint["key"], taint["effect"]) not in seen]:
        patch["spec"] = {"taints": present + absent}
    return patch


def resource_patch(spec: NodeSpec, node: Tree) -> Tree:
    """Extended resources that the node does not show; the kubelet drops them when it starts anew."""
    capacity = node["status"].get("capacity", {})
    allocatable = node["status"].get("allocatable", {})
    if all(capacity.get(k) == v and allocatable.get(k) == v for k, v in spec.resources.items()):
        return {}
    return {"status": {"capacity": spec.resources, "allocatable": spec.resources}}


def _dns_role() -> Tree:
    def read(group: str, *resources: str) -> Tree:
        return {"apiGroups": [group], "resources": list(resources), "verbs": ["list", "watch"]}

    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": [read("", "services", "pods", "namespaces"), read("discovery.k8s.io", "endpointslices")],
    }


def _binding(name: str, role: str, user: str = "") -> Tree:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user or name}],
    }


def _dns_service() -> Tree:
    """No selector: the DNS server runs next to the apiserver, not in a pod."""
    ports = [{"name": f"dns-{p.lower()}", "port": 53, "targetPort": 53, "protocol": p} for p in ("UDP", "TCP")]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"clusterIP": network.DNS_SERVICE, "ports": ports},
    }


def _dns_endpoints() -> Tree:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [network.FABRIC], "conditions": {"ready": True}}],
        "ports": [{"name": f"dns-{p.lower()}", "port": 53, "protocol": p} for p in ("UDP", "TCP")],
    }


def _storage_class(name: str, *, default: bool) -> Tree:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": str(default).lower()},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
