"""The operator as a process of its own, on a real API server."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import yaml

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.kinds import LEASE
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.connection import Connection
from kubeslurm.local.cluster import Cluster

DEADLINE = 60

# The rights and the flags that an installation of the Go operator has.
ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
SLURM = ["accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens"]
RIGHTS = (
    ("", ["configmaps", "events", "persistentvolumeclaims", "pods", "secrets", "services"], ALL),
    ("", ["nodes"], ["get", "list", "watch"]),
    ("", ["pods/status"], ["get", "patch", "update"]),
    ("apps", ["controllerrevisions", "deployments", "statefulsets"], ALL),
    ("coordination.k8s.io", ["leases"], ["create", "get", "patch", "update"]),
    ("events.k8s.io", ["events"], ["create", "patch"]),
    ("monitoring.coreos.com", ["servicemonitors"], ALL),
    ("policy", ["poddisruptionbudgets"], ALL),
    ("slinky.slurm.net", SLURM, ALL),
    ("slinky.slurm.net", [f"{each}/finalizers" for each in SLURM], ["update"]),
    ("slinky.slurm.net", [f"{each}/status" for each in SLURM], ["get", "patch", "update"]),
)
FLAGS = [f"--{name}-workers=4" for name in ("accounting", "controller", "loginset", "nodeset", "restapi", "token")]
FLAGS += ["--zap-log-level=info", "--slurmclient-workers=2", "--leader-elect"]


@pytest.fixture(scope="module")
def definitions(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The cluster with our CustomResourceDefinitions in force."""
    file = tmp_path_factory.mktemp("crds") / "crds.yaml"
    file.write_text("---\n".join(to_yaml(crd) for crd in crds().values()), encoding="utf-8")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in crds()))
    return cluster


class Replica:
    """A running operator, asked over its own HTTP ports."""

    def __init__(self, process: asyncio.subprocess.Process, ports: tuple[int, int], log: Path) -> None:
        self.process = process
        self.health, self.metrics = ports
        self.log = log

    async def get(self, port: int, path: str) -> httpx2.Response | None:
        async with httpx2.AsyncClient(timeout=5) as http:
            with contextlib.suppress(httpx2.HTTPError):
                return await http.get(f"http://127.0.0.1:{port}{path}")
        return None

    async def until_ready(self) -> None:
        async with asyncio.timeout(DEADLINE):
            while (answer := await self.get(self.health, "/readyz")) is None or answer.status_code != 200:
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.1)

    async def until_it_says(self, words: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while words not in self.log.read_text():  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.1)


@asynccontextmanager
async def operator(cluster: Cluster, log: Path, namespace: str) -> AsyncIterator[Replica]:
    flags = [f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}", "--leader-elect"]
    async with running(log, flags) as replica:
        yield replica


@asynccontextmanager
async def running(log: Path, flags: Sequence[str], **environment: str) -> AsyncIterator[Replica]:
    ports = free_port(), free_port()
    addresses = [f"--health-addr=127.0.0.1:{ports[0]}", f"--metrics-addr=127.0.0.1:{ports[1]}"]
    command = [sys.executable, "-m", "kubeslurm.operator", "operator", *flags, *addresses]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stderr=out, env=os.environ | environment)
    try:
        yield Replica(process, ports, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def holder(connection: Connection, namespace: str) -> str:
    lease = await Kube(connection, Caches(connection), manager="test").get(LEASE, Key(namespace, "slurm-operator"))
    return lease.spec.holderIdentity if lease else ""


async def test_it_becomes_ready_counts_and_ends_at_a_signal(
    definitions: Cluster, connection: Connection, namespace: str, tmp_path: Path
) -> None:
    async with operator(definitions, tmp_path / "log", namespace) as replica:
        await replica.until_ready()
        await replica.until_it_says("controllers start")
        assert (await replica.get(replica.health, "/healthz")) is not None
        scraped = await replica.get(replica.metrics, "/metrics")
        assert scraped is not None
        assert "kubeslurm_queue_depth" in scraped.text
        assert await holder(connection, namespace)
        replica.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            assert await replica.process.wait() == 0
        assert await holder(connection, namespace) == ""


async def test_a_second_replica_waits_and_takes_over(definitions: Cluster, namespace: str, tmp_path: Path) -> None:
    async with operator(definitions, tmp_path / "first", namespace) as first:
        await first.until_it_says("controllers start")
        async with operator(definitions, tmp_path / "second", namespace) as second:
            await second.until_ready()
            await second.until_it_says("waiting for the Lease")
            assert "controllers start" not in second.log.read_text()
            first.process.send_signal(signal.SIGTERM)
            await second.until_it_says("controllers start")


async def test_an_operator_in_another_namespace_keeps_its_hands_off(
    definitions: Cluster, connection: Connection, namespace: str, tmp_path: Path
) -> None:
    async with operator(definitions, tmp_path / "first", namespace) as first:
        await first.until_it_says("controllers start")
        async with operator(definitions, tmp_path / "second", "default") as second:
            await second.until_it_says("another operator is at work")
            assert await holder(connection, "default") == ""
            first.process.send_signal(signal.SIGTERM)
            await second.until_it_says("controllers start")


async def test_the_rights_and_flags_of_a_go_operator_bring_it_up(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = await asyncio.to_thread(account, definitions, namespace, tmp_path)
    flags = [*FLAGS, f"--leader-elect-namespace={namespace}"]
    async with running(tmp_path / "log", flags, KUBECONFIG=str(kubeconfig), POD_NAMESPACE=namespace) as replica:
        await replica.until_ready()
        await replica.until_it_says("controllers start")
        scraped = await replica.get(replica.metrics, "/metrics")
        assert scraped is not None
        assert 'code="403"' not in scraped.text


def account(cluster: Cluster, namespace: str, folder: Path) -> Path:
    """A kubeconfig for an account with those rights."""
    name, api = "go-operator", "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in RIGHTS]
    metadata = {"name": name, "namespace": namespace}
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    bound: Tree = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    bound |= {"roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name}}
    bound |= {"subjects": [{"kind": "ServiceAccount"} | metadata]}
    objects = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, role, bound]
    cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(objects))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", name, f"--namespace={namespace}").strip()}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


LEAVING = """
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {slurm.key: 0123456789abcdef0123456789abcdef, jwt.key: 0123456789abcdef0123456789abcdef}
---
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: slurm}
spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtKeyRef: {name: keys, key: jwt.key}}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: cpu}
spec: {controllerRef: {name: slurm}, replicas: 3}
---
apiVersion: slinky.slurm.net/v1beta1
kind: Token
metadata: {name: token}
spec: {jwtKeyRef: {name: keys, key: jwt.key}, username: me}
"""


async def test_a_namespace_that_is_deleted_is_let_go_and_not_fought_for(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def kubectl(*args: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(definitions.kubectl, *args, stdin=stdin)

    await kubectl("create", "namespace", "leaving")
    # Something of somebody else keeps the namespace in its state for as long as the test wants it.
    await kubectl("create", "configmap", "held", "--namespace=leaving")
    change = ("patch", "configmap", "held", "--namespace=leaving", "--type=merge")
    await kubectl(*change, '--patch={"metadata":{"finalizers":["example.org/hold"]}}')
    async with operator(definitions, tmp_path / "log", namespace) as replica, asyncio.timeout(2 * DEADLINE):
        await replica.until_it_says("controllers start")
        await kubectl("apply", "--namespace=leaving", "--filename=-", stdin=LEAVING)
        shown = ("get", "nodeset", "cpu", "--namespace=leaving", "--output=yaml")
        while "cleanup" not in await kubectl(*shown):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.2)
        await kubectl("delete", "--wait=false", "namespace", "leaving")
        left = ("get", "slurm", "--namespace=leaving", "--ignore-not-found")
        while await kubectl(*left):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.2)
        scraped = await replica.get(replica.metrics, "/metrics")
        await kubectl(*change, '--patch={"metadata":{"finalizers":null}}')
    assert scraped is not None
    counted = [line for line in scraped.text.splitlines() if "api_requests_total{" in line]
    refused = [float(line.split()[-1]) for line in counted if 'code="403"' in line]
    assert sum(refused) <= 10, "each worker and each controller may find out once"
