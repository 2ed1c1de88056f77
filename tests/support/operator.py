"""An operator as a process of its own: how it is started, how it is asked, and as whom it acts."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.local.cluster import Cluster

DEADLINE = 60

# Objects of every sort that need no node to be acted upon.
SMALL = """
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


def account(cluster: Cluster, namespace: str, objects: Sequence[Tree], folder: Path) -> Path:
    """A kubeconfig for the account among these objects."""
    cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(objects))
    (name,) = (each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", name, f"--namespace={namespace}").strip()}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
