"""Command lines and configuration files of a cluster's programs, rendered from `templates/`."""

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
VOLUMES = "/var/lib/kubeslurm/volumes"  # the same directory in every node, so that any node can mount any volume
MIN_LEASE = 120  # seconds
_ADDRESSES = {name.lower(): value for name, value in vars(network).items() if name.isupper()}


class Program(msgspec.Struct, frozen=True):
    """One program to run."""

    run: str
    after: Literal["", "containerd", "apiserver"] = ""  # what has to be ready first
    once: bool = False  # not restarted once it has succeeded

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.run, comments=True))


class NodeResources(msgspec.Struct, frozen=True):
    """What each node may use of this machine."""

    reserved_mb: int  # memory of the machine that is not allocatable on one node
    open_files: int
    may_lower_oom_score: bool  # CAP_SYS_RESOURCE


def render(template: str, **values: object) -> str:
    """A template with all values filled in."""
    return Template((TEMPLATES / template).read_text()).substitute(_ADDRESSES, **values)


def objects(template: str, **values: object) -> list[Tree]:
    """The Kubernetes objects of a template."""
    return list(yaml.safe_load_all(render(template, **values)))


def control_plane(spec: ClusterSpec) -> dict[str, Program]:
    """Programs of the control plane, by name."""
    # kwok renews a lease after a quarter of its duration. The duration grows with the number of fake nodes, so that the
    # API server gets at most 33 renewals a second, and with it the grace period after which a node counts as lost. For
    # the shortest lease that is 50 seconds, the default of Kubernetes.
    lease = max(MIN_LEASE, spec.fake_nodes * 4 // 33)
    text = render("control-plane.yaml", lease=lease, node_grace=lease * 5 // 12)
    programs = msgspec.yaml.decode(text, type=dict[str, Program])
    return {name: program for name, program in programs.items() if name != "kwok" or spec.fake_nodes}


def control_plane_files(pki: Path) -> dict[str, str]:
    """Files for the run directory, by name."""
    users = ("local-controller", "controller-manager", "scheduler", "coredns")
    configs = {f"{user}.kubeconfig": kubeconfig(pki, user, network.API_URL) for user in users}
    files = ("Corefile", "registry.yaml", "audit.yaml", "kwok.yaml", "scheduler.yaml")
    return configs | {name: render(name) for name in files}


def kubeconfig(pki: Path, user: str, server: str, cluster: str = "local") -> str:
    """A kubeconfig with its certificates embedded."""
    files = {"ca": "ca.crt", "certificate": f"{user}.crt", "key": f"{user}.key"}
    inline = {name: base64.b64encode((pki / file).read_bytes()).decode() for name, file in files.items()}
    return render("kubeconfig.yaml", user=user, server=server, cluster=cluster, **inline)


def node(spec: NodeSpec) -> dict[str, Program]:
    """Programs of a node, by name."""
    address = network.node_address(spec.index)
    text = render("node.yaml", node=spec.name, address=address, pause_archive=PAUSE_ARCHIVE)
    return msgspec.yaml.decode(text, type=dict[str, Program])


def node_files(spec: NodeSpec, resources: NodeResources) -> dict[str, str]:
    """Configuration files of a node, by absolute path."""
    address = network.node_address(spec.index)
    kubelet = {
        "oom_score": -999 if resources.may_lower_oom_score else 0,
        "open_files": resources.open_files,
        "reserved_mb": resources.reserved_mb,
        "taints": json.dumps([msgspec.to_builtins(taint) for taint in spec.taints]),
    }
    restrict = "false" if resources.may_lower_oom_score else "true"
    return {
        "/etc/hostname": f"{spec.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{address} {spec.name}\n",
        "/etc/resolv.conf": "",
        "/etc/machine-id": f"{spec.index:032x}\n",
        "/etc/containerd/config.toml": render("containerd.toml", socket=SOCKET, restrict_oom_score=restrict),
        "/etc/containerd/certs.d/localhost/hosts.toml": render("hosts.toml"),
        "/etc/cni/net.d/10-pods.conflist": render("pods.conflist", node_pods=network.pod_cidr(spec.index)),
        "/etc/kubernetes/kubelet.yaml": render("kubelet.yaml", socket=SOCKET, **kubelet),
    }


def node_credentials(spec: NodeSpec, pki: Path) -> dict[str, str]:
    """Certificates and kubeconfigs of one node only, by absolute path."""
    serving = f"kubelet-{spec.name}-serving"
    return {
        "/etc/kubernetes/ca.crt": (pki / "ca.crt").read_text(),
        "/etc/kubernetes/serving.crt": (pki / f"{serving}.crt").read_text(),
        "/etc/kubernetes/serving.key": (pki / f"{serving}.key").read_text(),
        "/etc/kubernetes/kubelet.kubeconfig": kubeconfig(pki, f"kubelet-{spec.name}", network.API_URL),
        "/etc/kubernetes/proxy.kubeconfig": kubeconfig(pki, "proxy", network.API_URL),
    }
