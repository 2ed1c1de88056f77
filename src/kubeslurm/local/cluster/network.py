"""Addresses of a cluster. They are the same in every cluster, because each has its own network namespace."""

from collections.abc import Iterable

BRIDGE_IP = "10.250.0.1"  # where the control plane, the DNS server and the registry listen
POD_CIDR = "10.244.0.0/16"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
DOMAIN = "cluster.local"
API_PORT = 6443
REGISTRY_PORT = 5000
API_URL = f"https://{BRIDGE_IP}:{API_PORT}"


def node_address(index: int) -> str:
    """Address on the bridge of the node with this index (from 1)."""
    return f"10.250.1.{index}"


def pod_cidr(index: int) -> str:
    """Pod network of the node with this index."""
    return f"10.244.{index}.0/24"


def hardware_address(index: int) -> str:
    """A fixed MAC address for a node, or for the bridge (0).

    Otherwise the bridge has the lowest address of its ports, which changes when a node leaves. Neighbours with the old
    address in their ARP tables are then cut off for most of a minute.
    """
    return f"02:00:0a:fa:{index >> 8:02x}:{index & 0xFF:02x}"


def bridge_commands() -> list[str]:
    """`ip -batch` lines that make the bridge, in the cluster's network namespace."""
    return [
        "link set lo up",
        f"link add br0 address {hardware_address(0)} type bridge",
        f"addr add {BRIDGE_IP}/16 dev br0",
        "link set br0 up",
    ]


def node_commands(index: int, others: Iterable[int], netns: int) -> list[str]:
    """Lines for the node's own network namespace; `netns` is a file descriptor of the cluster's."""
    return [
        "link set lo up",
        f"link add eth0 address {hardware_address(index)} type veth peer name veth{index} netns /proc/self/fd/{netns}",
        f"addr add {node_address(index)}/16 dev eth0",
        "link set eth0 up",
        f"route add default via {BRIDGE_IP}",
        *(f"route add {pod_cidr(other)} via {node_address(other)}" for other in others if other != index),
    ]


def attach_commands(index: int) -> list[str]:
    """Lines for the cluster's network namespace that connect a node to the bridge."""
    return [f"link set veth{index} master br0 up", f"route replace {pod_cidr(index)} via {node_address(index)}"]


def service_route(index: int) -> str:
    """A line for the cluster's network namespace that routes Service addresses through the kube-proxy of one node."""
    return f"route replace {SERVICE_CIDR} via {node_address(index)}"
