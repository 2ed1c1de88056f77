"""An operator as a process of its own: how it is started, how it is asked, and as whom it acts."""

import asyncio
import contextlib
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.waiting import wait_for

DEADLINE = 180  # seconds: the machine may be slow and busy, and a wait that ends well costs nothing

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
        async with httpx2.AsyncClient(timeout=60) as http:
            with contextlib.suppress(httpx2.HTTPError):
                return await http.get(f"http://127.0.0.1:{port}{path}")
        return None

    async def until_ready(self) -> None:
        async with self._deadline("to be ready"):
            while (answer := await self.get(self.health, "/readyz")) is None or answer.status_code != 200:
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def _deadline(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(DEADLINE):
                yield
        except TimeoutError:
            said = self.log.read_text()
            raise AssertionError(f"waited {DEADLINE} s in vain for the operator {what}:\n{said}") from None

    async def until_it_says(self, words: str) -> None:
        async with self._deadline(f"to say {words!r}"):
            while True:
                ended = self.process.returncode is not None
                said = self.log.read_text()
                if words in said:
                    return
                assert not ended, said
                await asyncio.sleep(0.1)


@asynccontextmanager
async def running(log: Path, flags: Sequence[str], **environment: str) -> AsyncIterator[Replica]:
    ports = free_ports()
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


def free_ports() -> tuple[int, int]:
    """Two that nobody is given by chance before they are used: below those that the system hands out."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    while len(found) < 2:
        port = random.randrange(lowest // 2, lowest)  # noqa: S311 (no secret)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in found:
                found.append(port)
    return found[0], found[1]


def account(cluster: Cluster, namespace: str, objects: Sequence[Tree], folder: Path) -> Path:
    """A kubeconfig for the account among these objects."""
    cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(objects))
    (name,) = (each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount")
    wait_until_granted(cluster, f"system:serviceaccount:{namespace}:{name}", objects)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", name, f"--namespace={namespace}").strip()}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def wait_until_granted(cluster: Cluster, user: str, objects: Sequence[Tree]) -> None:
    """The API server takes up roles a moment after they were written."""
    questions = yaml.safe_dump_all(reviews(user, objects))
    look = ("create", "--output=jsonpath={.status.allowed} ", "--filename=-")
    wait_for("all rights", lambda: set(cluster.kubectl(*look, stdin=questions).split()) == {"true"})


def reviews(user: str, objects: Sequence[Tree]) -> Iterator[Tree]:
    """Whether each rule of the roles is in force, by the first entry of each of its lists."""
    roles = {
        (each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects if "rules" in each
    }
    for binding in (each for each in objects if "roleRef" in each):
        place = binding["metadata"].get("namespace", "")
        role = place if binding["roleRef"]["kind"] == "Role" else "", binding["roleRef"]["name"]
        for rule in roles[role]["rules"]:
            resource, _, part = rule["resources"][0].partition("/")
            wanted = {"namespace": place, "verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource}
            wanted |= {"subresource": part, "name": rule.get("resourceNames", [""])[0]}
            spec = {"user": user, "resourceAttributes": wanted}
            yield {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
