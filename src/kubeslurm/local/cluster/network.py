"""Addresses of a cluster, the same in each since each has a network namespace of its own."""

from collections.abc import Iterable

FABRIC = "10.250.0.1"  # bridge address: control plane, DNS server, registry
POD_CIDR = "10.244.0.0/16"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
DOMAIN = "cluster.local"
API_PORT = 6443
REGISTRY_PORT = 5000
API_URL = f"https://{FABRIC}:{API_PORT}"


def node_address(index: int) -> str:
    """Address of the node with this index (from 1) on the bridge."""
    return f"10.250.1.{index}"


def pod_cidr(index: int) -> str:
    """Pod network of the node with this index."""
    return f"10.244.{index}.0/24"


def hardware_address(index: int) -> str:
    """A fixed address, as a real machine has; 0 is the bridge, which would change its own when a node leaves.

    Neighbours that remember an address of the past talk to nobody for most of a minute.
    """
    return f"02:00:0a:fa:{index >> 8:02x}:{index & 0xFF:02x}"


def fabric_commands() -> list[str]:
    """`ip -batch` lines for the namespace that holds the bridge."""
    return [
        "link set lo up",
        f"link add br0 address {hardware_address(0)} type bridge",
        f"addr add {FABRIC}/16 dev br0",
        "link set br0 up",
    ]


def node_commands(index: int, others: Iterable[int], fabric: int) -> list[str]:
    """Lines in the node's own namespace; `fabric` is a file descriptor of the one with the bridge."""
    return [
        "link set lo up",
        f"link add eth0 address {hardware_address(index)} type veth peer name veth{index} netns /proc/self/fd/{fabric}",
        f"addr add {node_address(index)}/16 dev eth0",
        "link set eth0 up",
        f"route add default via {FABRIC}",
        *(f"route add {pod_cidr(other)} via {node_address(other)}" for other in others if other != index),
    ]


def attach_commands(index: int) -> list[str]:
    """Lines, in the fabric, that plug the node in."""
    return [f"link set veth{index} master br0 up", f"route replace {pod_cidr(index)} via {node_address(index)}"]


def service_route(index: int) -> str:
    """Line, in the fabric, that sends Service addresses through one node's kube-proxy."""
    return f"route replace {SERVICE_CIDR} via {node_address(index)}"
