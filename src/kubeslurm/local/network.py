"""Addresses of a cluster, the same in each since each has a network namespace of its own."""

from collections.abc import Iterable

FABRIC = "10.250.0.1"  # bridge address: control plane, DNS server, registry
FABRIC_CIDR = "10.250.0.0/16"
POD_CIDR = "10.244.0.0/16"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
DOMAIN = "cluster.local"
API_PORT = 6443
REGISTRY_PORT = 5000


def node_address(index: int) -> str:
    """Address of the node with this index (from 1) on the bridge."""
    return f"10.250.1.{index}"


def pod_cidr(index: int) -> str:
    """Pod network of the node with this index."""
    return f"10.244.{index}.0/24"


def fabric_commands() -> list[str]:
    """`ip -batch` lines for the namespace that holds the bridge."""
    return [
        "link set lo up",
        "link add br0 type bridge",
        f"addr add {FABRIC}/16 dev br0",
        "link set br0 up",
    ]


def attach_commands(index: int, pid: int) -> list[str]:
    """Lines, in the fabric, that plug a node's `eth0` into the bridge; `pid` is any process of the node."""
    return [
        f"link add veth{index} type veth peer name eth0 netns {pid}",
        f"link set veth{index} master br0 up",
        f"route replace {pod_cidr(index)} via {node_address(index)}",
    ]


def node_commands(index: int, others: Iterable[int]) -> list[str]:
    """Lines in the node's own namespace."""
    return [
        "link set lo up",
        f"addr add {node_address(index)}/16 dev eth0",
        "link set eth0 up",
        f"route add default via {FABRIC}",
        *(f"route add {pod_cidr(other)} via {node_address(other)}" for other in others if other != index),
    ]


def service_route_command(index: int) -> str:
    """Line, in the fabric, that sends Service addresses through one node's kube-proxy."""
    return f"route replace {SERVICE_CIDR} via {node_address(index)}"
