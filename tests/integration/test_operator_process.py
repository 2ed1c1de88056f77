"""The operator as a process of its own, on a real API server."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.kinds import LEASE
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.connection import Connection
from kubeslurm.local.cluster import Cluster

DEADLINE = 60


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
    ports = free_port(), free_port()
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kubeslurm.operator",
            "operator",
            f"--kubeconfig={cluster.kubeconfig}",
            f"--namespace={namespace}",
            "--leader-elect",
            f"--health-addr=127.0.0.1:{ports[0]}",
            f"--metrics-addr=127.0.0.1:{ports[1]}",
            stderr=out,
        )
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
