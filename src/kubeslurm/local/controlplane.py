"""Command lines and files of everything that runs once per cluster."""

import base64
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from kubeslurm.local import network
from kubeslurm.local.state import ClusterSpec

# Paths as the parts see them: their root is the node image, the cluster's directory is mounted at /cluster.
PKI = "/cluster/pki"
RUN = "/cluster/run"
API_URL = f"https://{network.FABRIC}:{network.API_PORT}"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


class Program(msgspec.Struct, frozen=True):
    """Something to run: its name in `status` and its command line."""

    name: str
    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    after: Literal["", "containerd", "apiserver"] = ""  # what has to answer first
    once: bool = False  # done when it ends well


def programs(spec: ClusterSpec) -> list[Program]:
    """All parts of the control plane."""
    parts = [_etcd(), _apiserver(), _controller_manager(), _scheduler(), _coredns(), _registry()]
    return parts + ([_kwok()] if spec.fake_nodes else [])


def files(pki: Path) -> dict[str, bytes]:
    """Contents of the run directory, by name."""
    users = ("keeper", "controller-manager", "scheduler", "coredns")
    configs = {f"{user}.kubeconfig": kubeconfig(pki, user, API_URL) for user in users}
    return configs | {
        "Corefile": _corefile().encode(),
        "registry.yaml": _dump(_registry_config()),
        "audit.yaml": _dump(_audit_policy()),
    }


def kubeconfig(pki: Path, user: str, server: str, cluster: str = "local") -> bytes:
    """A kubeconfig that carries its certificates with it."""

    def inline(name: str) -> str:
        return base64.b64encode((pki / name).read_bytes()).decode()

    return _dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": cluster, "cluster": {"server": server, "certificate-authority-data": inline("ca.crt")}}
            ],
            "users": [
                {
                    "name": f"{user}@{cluster}",
                    "user": {
                        "client-certificate-data": inline(f"{user}.crt"),
                        "client-key-data": inline(f"{user}.key"),
                    },
                }
            ],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": f"{user}@{cluster}"}}],
            "current-context": cluster,
        }
    )


def _etcd() -> Program:
    return Program(
        "etcd",
        (
            "etcd",
            "--name=local",
            "--data-dir=/cluster/etcd",
            # What is written survives any crash of ours in the page cache; only a power cut could lose some.
            "--unsafe-no-fsync",
            "--listen-client-urls=https://127.0.0.1:2379",
            "--advertise-client-urls=https://127.0.0.1:2379",
            "--listen-peer-urls=https://127.0.0.1:2380",
            "--initial-advertise-peer-urls=https://127.0.0.1:2380",
            "--initial-cluster=local=https://127.0.0.1:2380",
            "--client-cert-auth",
            f"--trusted-ca-file={PKI}/etcd-ca.crt",
            f"--cert-file={PKI}/etcd.crt",
            f"--key-file={PKI}/etcd.key",
            "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={PKI}/etcd-ca.crt",
            f"--peer-cert-file={PKI}/etcd.crt",
            f"--peer-key-file={PKI}/etcd.key",
            "--log-level=warn",
            "--auto-compaction-retention=1",
        ),
    )


_AGGREGATION = (
    f"--requestheader-client-ca-file={PKI}/front-proxy-ca.crt",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    f"--proxy-client-cert-file={PKI}/front-proxy.crt",
    f"--proxy-client-key-file={PKI}/front-proxy.key",
    # No kube-proxy next to the control plane: webhooks and aggregated APIs are reached at their pods.
    "--enable-aggregator-routing=true",
)
_AUDIT = (
    f"--audit-policy-file={RUN}/audit.yaml",
    "--audit-log-path=/cluster/logs/audit.log",
    "--audit-log-maxsize=64",
    "--audit-log-maxbackup=1",
)


def _apiserver() -> Program:
    return Program(
        "kube-apiserver",
        (
            "kube-apiserver",
            f"--bind-address={network.FABRIC}",
            f"--advertise-address={network.FABRIC}",
            f"--secure-port={network.API_PORT}",
            "--etcd-servers=https://127.0.0.1:2379",
            f"--etcd-cafile={PKI}/etcd-ca.crt",
            f"--etcd-certfile={PKI}/apiserver-etcd.crt",
            f"--etcd-keyfile={PKI}/apiserver-etcd.key",
            f"--tls-cert-file={PKI}/apiserver.crt",
            f"--tls-private-key-file={PKI}/apiserver.key",
            f"--client-ca-file={PKI}/ca.crt",
            f"--kubelet-certificate-authority={PKI}/ca.crt",
            f"--kubelet-client-certificate={PKI}/apiserver-kubelet.crt",
            f"--kubelet-client-key={PKI}/apiserver-kubelet.key",
            "--kubelet-preferred-address-types=InternalIP",
            *_AGGREGATION,
            *_AUDIT,
            f"--service-account-issuer=https://kubernetes.default.svc.{network.DOMAIN}",
            f"--service-account-key-file={PKI}/service-accounts.pub",
            f"--service-account-signing-key-file={PKI}/service-accounts.key",
            f"--service-cluster-ip-range={network.SERVICE_CIDR}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--profiling=false",
        ),
    )


def _controller_manager() -> Program:
    return Program(
        "kube-controller-manager",
        (
            "kube-controller-manager",
            f"--kubeconfig={RUN}/controller-manager.kubeconfig",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={PKI}/service-accounts.key",
            f"--root-ca-file={PKI}/ca.crt",
            # Kubelets bring their certificates; each further signer would cost one of the machine's inotify instances.
            f"--cluster-signing-kube-apiserver-client-cert-file={PKI}/ca.crt",
            f"--cluster-signing-kube-apiserver-client-key-file={PKI}/ca.key",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
        ),
    )


def _scheduler() -> Program:
    argv = ("--leader-elect=false", "--secure-port=0", "--profiling=false")
    return Program("kube-scheduler", ("kube-scheduler", f"--kubeconfig={RUN}/scheduler.kubeconfig", *argv))


def _coredns() -> Program:
    return Program("coredns", ("coredns", "-conf", f"{RUN}/Corefile"), after="apiserver")


def _registry() -> Program:
    return Program("registry", ("docker-registry", "serve", f"{RUN}/registry.yaml"))


def _kwok() -> Program:
    return Program(
        "kwok",
        (
            "/kwok/kwok",
            f"--kubeconfig={RUN}/keeper.kubeconfig",
            "--config=/kwok/stages.yaml",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            "--server-address=",
        ),
    )


def _corefile() -> str:
    return f"""\
.:53 {{
    errors
    ready 127.0.0.1:8181
    kubernetes {network.DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {RUN}/coredns.kubeconfig
        pods insecure
        ttl 5
    }}
    cache 5
    loadbalance
}}
"""


def _audit_policy() -> dict[str, object]:
    """What programs in pods asked for and what they were answered; Kubernetes' own accounts ask far too much."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
            {"level": "None"},
        ],
    }


def _registry_config() -> dict[str, object]:
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": "/cluster/registry"}, "delete": {"enabled": True}},
        "http": {
            "addr": f"{network.FABRIC}:{network.REGISTRY_PORT}",
            "tls": {"certificate": f"{PKI}/registry.crt", "key": f"{PKI}/registry.key"},
        },
    }


def _dump(tree: object) -> bytes:
    return yaml.safe_dump(tree, sort_keys=False).encode()
