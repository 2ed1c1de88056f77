"""Fills a real API server with pods and nodes of real size, and changes them."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from kubeslurm.api.kinds import NAMESPACE, NODE, POD
from kubeslurm.api.meta import Tree
from kubeslurm.kube.errors import AlreadyExists, ApiError
from kubeslurm.kube.transport.connection import PATCH_TYPES, Connection, Request, connect

CONCURRENCY = 24
NAMESPACE_NAME = "slurm"


class Population:
    """Pods and nodes without kubelets."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._round = 0

    async def create_namespace(self) -> None:
        """Create the namespace, and wait for its default service account."""
        connection = Connection(connect(self._kubeconfig), timeout=60)
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE_NAME}}
        await connection.write(_post(NAMESPACE.path(), "Namespace", tree))
        account = Request(
            verb="get", kind="ServiceAccount", path=f"/api/v1/namespaces/{NAMESPACE_NAME}/serviceaccounts/default"
        )
        async with asyncio.timeout(60):
            while True:
                try:
                    await connection.read(account)
                except ApiError:
                    await asyncio.sleep(0.2)
                else:
                    break
        await connection.close()

    async def create(self, pods: int, nodes: int) -> None:
        await self._send(_post(NODE.path(), "Node", node(number)) for number in range(nodes))
        await self._send(_post(POD.path(NAMESPACE_NAME), "Pod", pod(number, nodes)) for number in range(pods))

    async def change(self, count: int) -> None:
        """Change the status of the first pods."""
        self._round += 1
        await self._send(
            Request(
                verb="patch",
                kind="Pod",
                method="PATCH",
                path=POD.path(NAMESPACE_NAME, pod_name(number), "status"),
                body=msgspec.json.encode({"status": status(f"10.{self._round}.{number >> 8}.{number & 255}")}),
                content_type=PATCH_TYPES["merge"],
            )
            for number in range(count)
        )

    async def _send(self, requests: Iterable[Request]) -> None:
        connection = Connection(connect(self._kubeconfig), writes=CONCURRENCY, timeout=120)
        pending = iter(requests)

        async def work() -> None:
            for request in pending:
                try:
                    await connection.write(request)
                except AlreadyExists:
                    continue

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        await connection.close()


def _post(path: str, kind: str, tree: Tree) -> Request:
    return Request(verb="create", kind=kind, method="POST", path=path, body=msgspec.json.encode(tree))


def pod_name(number: int) -> str:
    return f"slurm-worker-cpu-{number}"


def pod(number: int, nodes: int) -> Tree:
    labels = {
        f"app.kubernetes.io/{name}": f"slurm-worker-{name}" for name in ("name", "instance", "component", "part-of")
    }
    volumes = [{"name": f"volume-{index}", "configMap": {"name": f"volume-{index}"}} for index in range(10)]
    mounts = [{"name": f"volume-{index}", "mountPath": f"/mnt/volume-{index}", "readOnly": True} for index in range(10)]
    environment = [{"name": f"SLURM_VARIABLE_{index}", "value": "v" * 40} for index in range(10)]
    amounts = {"cpu": "8", "memory": "64Gi"}
    container = {
        "image": "registry.example.org/slurm/slurmd:26.05",
        "args": ["--conf-server", "slurm-controller:6817", "-N", f"cpu-{number}"],
        "env": environment,
        "volumeMounts": mounts,
        "resources": {"limits": amounts, "requests": amounts},
    }
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "cpu", "uid": f"owner-{number % 10}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE_NAME,
            "name": pod_name(number),
            "labels": labels,
            "annotations": {"note": "n" * 200},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node_name(number % max(nodes, 1)),
            "hostname": f"cpu-{number}",
            "automountServiceAccountToken": False,
            "containers": [container | {"name": "slurmd"}, container | {"name": "logfile"}],
            "volumes": volumes,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def status(address: str) -> Tree:
    moment = "2026-01-01T00:00:00Z"
    running: dict[str, Any] = {
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "registry.example.org/slurm/slurmd:26.05",
        "imageID": "sha256:" + "a" * 64,
        "containerID": "containerd://" + "b" * 64,
        "state": {"running": {"startedAt": moment}},
    }
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": moment,
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": moment}
            for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [running | {"name": "slurmd"}, running | {"name": "logfile"}],
    }


def node_name(number: int) -> str:
    return f"node-{number}"


def node(number: int) -> Tree:
    """A node with a list of images, which is the largest part of a real node."""
    amounts = {"cpu": "128", "memory": "1024Gi", "pods": "110", "ephemeral-storage": "900Gi"}
    images = [
        {"names": [f"registry.example.org/some/image-{index}@sha256:{index:064x}"], "sizeBytes": 123456789 + index}
        for index in range(40)
    ]
    conditions = [
        {"type": name, "status": "True" if name == "Ready" else "False", "reason": "KubeletReady"}
        for name in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "labels": {"kubernetes.io/hostname": node_name(number), "rack": f"r{number % 64}"},
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": f"10.200.{number >> 8}.{number & 255}"}],
            "images": images,
        },
    }
