"""Command lines and files of all parts of a cluster: `templates/`, with this cluster's values filled in."""

import base64
import json
import shlex
from pathlib import Path
from string import Template
from typing import Any, Literal

import msgspec
import yaml

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.state import ClusterSpec

Tree = dict[str, Any]
TEMPLATES = Path(__file__).with_name("templates")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root"}
SOCKET = "/run/containerd/containerd.sock"
PAUSE_ARCHIVE = "/usr/local/share/pause.tar"
VOLUMES = "/var/lib/kubeslurm/volumes"  # the same directory in every node, so any volume can be mounted anywhere
SHORTEST_LEASE = 120  # seconds
_ADDRESSES = {name.lower(): value for name, value in vars(network).items() if name.isupper()}


class Program(msgspec.Struct, frozen=True):
    """Something to run."""

    run: str
    after: Literal["", "containerd", "apiserver"] = ""  # what has to answer first
    once: bool = False  # done when it ends well

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.run, comments=True))


class Share(msgspec.Struct, frozen=True):
    """What this machine gives to each node."""

    reserved_mb: int  # of the machine's memory, what one node must not hand out
    open_files: int
    may_lower_oom_score: bool  # CAP_SYS_RESOURCE


def fill(template: str, **values: object) -> str:
    """The text of a template."""
    return Template((TEMPLATES / template).read_text()).substitute(_ADDRESSES, **values)


def trees(template: str, **values: object) -> list[Tree]:
    """The objects of a template."""
    return list(yaml.safe_load_all(fill(template, **values)))


def control_plane(spec: ClusterSpec) -> dict[str, Program]:
    """What runs once per cluster, by name."""
    # Leases are renewed at a quarter of their time. However many nodes are pretended, the API server is to hear of no
    # more than 33 a second, and they are not to count as lost between two renewals: for the shortest lease that is
    # after 50 seconds, as Kubernetes has it.
    lease = max(SHORTEST_LEASE, spec.fake_nodes * 4 // 33)
    text = fill("control-plane.yaml", lease=lease, node_grace=lease * 5 // 12)
    parts = msgspec.yaml.decode(text, type=dict[str, Program])
    return {name: part for name, part in parts.items() if name != "kwok" or spec.fake_nodes}


def control_plane_files(pki: Path) -> dict[str, str]:
    """Contents of the run directory, by name."""
    users = ("keeper", "controller-manager", "scheduler", "coredns")
    configs = {f"{user}.kubeconfig": kubeconfig(pki, user, network.API_URL) for user in users}
    files = ("Corefile", "registry.yaml", "audit.yaml", "kwok.yaml", "scheduler.yaml")
    return configs | {name: fill(name) for name in files}


def kubeconfig(pki: Path, user: str, server: str, cluster: str = "local") -> str:
    """A kubeconfig that carries its certificates with it."""
    files = {"ca": "ca.crt", "certificate": f"{user}.crt", "key": f"{user}.key"}
    inline = {name: base64.b64encode((pki / file).read_bytes()).decode() for name, file in files.items()}
    return fill("kubeconfig.yaml", user=user, server=server, cluster=cluster, **inline)


def node(spec: NodeSpec) -> dict[str, Program]:
    """What runs in a node, by name."""
    address = network.node_address(spec.index)
    text = fill("node.yaml", node=spec.name, address=address, pause_archive=PAUSE_ARCHIVE)
    return msgspec.yaml.decode(text, type=dict[str, Program])


def node_files(spec: NodeSpec, share: Share) -> dict[str, str]:
    """Settings of the node, by absolute path."""
    address = network.node_address(spec.index)
    kubelet = {
        "oom_score": -999 if share.may_lower_oom_score else 0,
        "open_files": share.open_files,
        "reserved_mb": share.reserved_mb,
        "taints": json.dumps([msgspec.to_builtins(taint) for taint in spec.taints]),
    }
    restrict = "false" if share.may_lower_oom_score else "true"
    return {
        "/etc/hostname": f"{spec.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{address} {spec.name}\n",
        "/etc/resolv.conf": "",
        "/etc/machine-id": f"{spec.index:032x}\n",
        "/etc/containerd/config.toml": fill("containerd.toml", socket=SOCKET, restrict_oom_score=restrict),
        "/etc/containerd/certs.d/localhost/hosts.toml": fill("hosts.toml"),
        "/etc/cni/net.d/10-pods.conflist": fill("pods.conflist", node_pods=network.pod_cidr(spec.index)),
        "/etc/kubernetes/kubelet.yaml": fill("kubelet.yaml", socket=SOCKET, **kubelet),
    }


def node_credentials(spec: NodeSpec, pki: Path) -> dict[str, str]:
    """What the node proves itself with, and nothing of any other node, by absolute path."""
    serving = f"kubelet-{spec.name}-serving"
    return {
        "/etc/kubernetes/ca.crt": (pki / "ca.crt").read_text(),
        "/etc/kubernetes/serving.crt": (pki / f"{serving}.crt").read_text(),
        "/etc/kubernetes/serving.key": (pki / f"{serving}.key").read_text(),
        "/etc/kubernetes/kubelet.kubeconfig": kubeconfig(pki, f"kubelet-{spec.name}", network.API_URL),
        "/etc/kubernetes/proxy.kubeconfig": kubeconfig(pki, "proxy", network.API_URL),
    }
