"""Command lines and files of one node: containerd, kubelet, kube-proxy, pod network."""

import json
from pathlib import Path

import msgspec
import yaml

from kubeslurm.local import network
from kubeslurm.local.controlplane import API_URL, Program, kubeconfig
from kubeslurm.local.nodespec import NodeSpec

SOCKET = "/run/containerd/containerd.sock"
PAUSE = "localhost/pause:1"
PAUSE_ARCHIVE = "/usr/local/share/pause.tar"
VOLUMES = "/var/lib/kubeslurm/volumes"  # the same directory in every node, so any volume can be mounted anywhere


class Machine(msgspec.Struct, frozen=True):
    """What this machine gives to each node."""

    memory_mb: int
    share_mb: int  # what one node may hand out
    open_files: int
    may_lower_oom_score: bool  # CAP_SYS_RESOURCE


def programs(node: NodeSpec) -> list[Program]:
    """What a node runs. What gives up, or pauses for seconds, when the other side is not there yet waits for it."""
    kubelet = (
        "kubelet",
        "--config=/etc/kubernetes/kubelet.yaml",
        "--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={network.node_address(node.index)}",
    )
    pause = ("ctr", "--namespace=k8s.io", "images", "import", "--local", PAUSE_ARCHIVE)
    proxy = (
        "kube-proxy",
        # Flags, no file: a file would be watched, and the machine has few inotify instances for all nodes together.
        "--kubeconfig=/etc/kubernetes/proxy.kubeconfig",
        f"--hostname-override={node.name}",
        "--proxy-mode=nftables",
        f"--cluster-cidr={network.POD_CIDR}",
        # Limits of connection tracking are the machine's and stay as they are.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--oom-score-adj=0",
    )
    return [
        Program(f"{node.name}/containerd", ("containerd", "--log-level=warn")),
        Program(f"{node.name}/pause", pause, after="containerd", once=True),
        Program(f"{node.name}/kubelet", kubelet, after="containerd"),
        Program(f"{node.name}/kube-proxy", proxy, after="apiserver"),
    ]


def credentials(node: NodeSpec, pki: Path) -> dict[str, bytes]:
    """What the node proves itself with, and nothing of any other node, by absolute path."""
    return {
        "/etc/kubernetes/ca.crt": (pki / "ca.crt").read_bytes(),
        "/etc/kubernetes/serving.crt": (pki / f"kubelet-{node.name}-serving.crt").read_bytes(),
        "/etc/kubernetes/serving.key": (pki / f"kubelet-{node.name}-serving.key").read_bytes(),
        "/etc/kubernetes/kubelet.kubeconfig": kubeconfig(pki, f"kubelet-{node.name}", API_URL),
        "/etc/kubernetes/proxy.kubeconfig": kubeconfig(pki, "proxy", API_URL),
    }


def files(node: NodeSpec, machine: Machine) -> dict[str, str]:
    """Settings of the node, by absolute path."""
    address = network.node_address(node.index)
    return {
        "/etc/hostname": f"{node.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{address} {node.name}\n",
        "/etc/resolv.conf": "",
        "/etc/machine-id": f"{node.index:032x}\n",
        "/etc/containerd/config.toml": containerd(machine),
        "/etc/containerd/certs.d/localhost/hosts.toml": registry_hosts(),
        "/etc/cni/net.d/10-pods.conflist": pod_network(node),
        "/etc/kubernetes/kubelet.yaml": kubelet(node, machine),
    }


def containerd(machine: Machine) -> str:
    """containerd 2.x: pods by runc, images named localhost/... from the cluster's registry."""
    # Without CAP_SYS_RESOURCE nothing may get a lower OOM score than its parent, and every sandbox would fail.
    restrict = str(not machine.may_lower_oom_score).lower()
    snapshotters = (f"snapshotter.v1.{name}" for name in ("btrfs", "zfs", "devmapper", "blockfile", "native", "erofs"))
    disabled = ", ".join(f'"io.containerd.{name}"' for name in (*snapshotters, "internal.v1.opt", "nri.v1.nri"))
    return f"""\
version = 3
disabled_plugins = [{disabled}]
[grpc]
  address = "{SOCKET}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE}"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = {restrict}
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "runc"
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
"""


def registry_hosts() -> str:
    """Sends pulls of localhost/NAME:TAG to the cluster's registry."""
    url = f"https://{network.FABRIC}:{network.REGISTRY_PORT}"
    return f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n  ca = "/etc/kubernetes/ca.crt"\n'


def pod_network(node: NodeSpec) -> str:
    """One bridge per node; other nodes' pods are reached by static routes."""
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": network.pod_cidr(node.index)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni-addresses",
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True, "backend": "nftables"}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]})


_AUTHENTICATION = {
    "anonymous": {"enabled": False},
    "webhook": {"enabled": True},
    "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"},
}


def kubelet(node: NodeSpec, machine: Machine) -> str:
    """Kubelet: certificates for both directions, the apiserver decides who may do what."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": _AUTHENTICATION,
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/etc/kubernetes/serving.crt",
        "tlsPrivateKeyFile": "/etc/kubernetes/serving.key",
        "readOnlyPort": 0,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        # The tunables are the whole machine's: the node shows files with the wanted values in their place.
        "protectKernelDefaults": True,
        "failSwapOn": False,
        "maxOpenFiles": machine.open_files,
        "clusterDomain": network.DOMAIN,
        "clusterDNS": [network.DNS_SERVICE],
        "resolvConf": "/etc/resolv.conf",
        "configMapAndSecretChangeDetectionStrategy": "Watch",
        "serializeImagePulls": False,
        # Every kubelet sees the whole machine; what the other nodes may use is not this one's to give.
        "systemReserved": {"cpu": "100m", "memory": f"{machine.memory_mb - machine.share_mb}Mi"},
        "evictionHard": {"memory.available": "64Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "registerWithTaints": [msgspec.to_builtins(taint) for taint in node.taints],
    }
    if not machine.may_lower_oom_score:
        config["oomScoreAdj"] = 0
    return yaml.safe_dump(config, sort_keys=False)
