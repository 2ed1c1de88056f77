"""The Kubernetes cluster of an end-to-end test: every command has a deadline, and reading costs no process.

A kubectl takes 0.15 s of a core before it does anything, and tests look several times a second.
"""

import asyncio
import json
import ssl
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import cached_property
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import aiohttp
import yaml

from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError

DEADLINE = 400.0  # seconds: longer than any --timeout that tests give to kubectl
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
STREAMS = "v5.channel.k8s.io"
STDOUT, STDERR, OUTCOME = 1, 2, 3  # channels of that protocol


class Resource(NamedTuple):
    """Where the API server serves a kind."""

    prefix: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(filter(None, (f"{self.prefix}{place}/{self.plural}", name)))


class Ended(NamedTuple):
    """What a command in a container printed, and whether it succeeded."""

    succeeded: bool
    stdout: str
    stderr: str


class Kubernetes(Cluster):
    """A cluster of this machine, as tests use it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._resources: dict[str, Resource] = {}
        # One loop and one session for all requests: TLS connections close only while their loop runs.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._session: aiohttp.ClientSession | None = None

    def close(self) -> None:
        """Ends the connections to the API server."""
        if self._session is not None:
            self._runner.run(self._end_session(self._session))
            self._session = None
        self._runner.close()

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        done = run(self.kubectl_command(*args), stdin=stdin)
        if check and done.returncode:
            raise LocalError(f"kubectl {' '.join(args)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def exec_in_network(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return run(["nsenter", f"--target={self._init_pid()}", "--net", "--", *argv])

    def exec_in_node(self, node: str, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return run([*self.node_command(node), *argv])

    def refusal(self, manifest: str) -> str:
        """What the API server answers to an object that it must not admit."""
        done = run(self.kubectl_command("create", "--dry-run=server", "--filename=-"), stdin=manifest)
        assert done.returncode != 0, f"admitted: {done.stdout}"
        return done.stderr

    def read(self, kind: str, namespace: str, name: str = "", selector: str = "") -> dict[str, Any] | None:
        """An object or a list; None when it does not exist."""
        path = self._resource(kind).path(namespace, name)
        try:
            status, tree = self._runner.run(self._get(path, {"labelSelector": selector} if selector else {}))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise LocalError(f"GET {path} failed: {error!r}") from error
        if status == 404:
            return None
        if status != 200:
            raise LocalError(f"GET {path} failed: {status} {tree.get('message', '')}")
        return tree

    def exec_in_pod(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, deadline: float = DEADLINE
    ) -> Ended:
        """Runs a command in a container, by way of its kubelet as `kubectl exec` does."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        query = [("container", container)] * bool(container) + [("stdout", "1"), ("stderr", "1")]
        query += [("command", word) for word in command]
        try:
            return self._runner.run(self._exec(path, query, deadline))
        except aiohttp.ClientError as error:
            return Ended(False, "", f"{pod}: {error}")
        except TimeoutError:
            where = f"{namespace}/{pod}"
            raise AssertionError(f"{' '.join(command)} in {where} has not ended after {deadline:.0f} s") from None

    def _resource(self, kind: str) -> Resource:
        if kind not in self._resources:
            self._resources = self._runner.run(self._discover())
        return self._resources[kind]

    async def _discover(self) -> dict[str, Resource]:
        """Every kind by all of its names; of two kinds with one name the first group wins, as with kubectl."""
        found: dict[str, Resource] = {}
        for root in ("/api", "/apis"):
            status, tree = await self._get(root, {}, accept=DISCOVERY)
            assert status == 200, tree
            for group in tree["items"]:
                name = group["metadata"].get("name", "")
                version = group["versions"][0]
                prefix = "/".join(filter(None, (root, name, version["version"])))
                for each in version["resources"]:
                    resource = Resource(prefix, each["resource"], each["scope"] == "Namespaced")
                    names = [each["resource"], each["singularResource"], *each.get("shortNames", ())]
                    for alias in (*names, f"{each['resource']}.{name}"):
                        found.setdefault(alias, resource)
        return found

    async def _get(
        self, path: str, query: dict[str, str], *, accept: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        wait = aiohttp.ClientTimeout(total=60)
        async with self._open().get(path, params=query, headers={"Accept": accept}, timeout=wait) as answer:
            return answer.status, await answer.json(content_type=None)

    async def _exec(self, path: str, query: list[tuple[str, str]], deadline: float) -> Ended:
        channels: dict[int, bytes] = {STDOUT: b"", STDERR: b"", OUTCOME: b""}
        async with (
            asyncio.timeout(deadline),
            self._open().ws_connect(path, params=query, protocols=(STREAMS,), max_msg_size=0) as stream,
        ):
            async for message in stream:
                if message.type is aiohttp.WSMsgType.BINARY and message.data:
                    channels[message.data[0]] += message.data[1:]
        outcome = json.loads(channels[OUTCOME] or b"{}")
        reason = outcome.get("message", "") if outcome else "the connection was lost"
        stderr = channels[STDERR].decode(errors="replace") or reason
        return Ended(outcome.get("status") == "Success", channels[STDOUT].decode(errors="replace"), stderr)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(self._server, connector=aiohttp.TCPConnector(ssl=self._tls))
        return self._session

    @staticmethod
    async def _end_session(session: aiohttp.ClientSession) -> None:
        await session.close()
        await asyncio.sleep(0.3)  # until TLS has said good-bye on every connection

    @cached_property
    def _admin(self) -> dict[str, Any]:
        config = yaml.safe_load(self.kubeconfig.read_text())
        return {**config["clusters"][0]["cluster"], **config["users"][0]["user"]}

    @property
    def _server(self) -> str:
        return str(self._admin["server"])

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trusts the cluster's authority and shows the administrator's certificate."""
        context = ssl.create_default_context(cadata=b64decode(self._admin["certificate-authority-data"]).decode())
        with NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(b64decode(self._admin[part]))
            file.flush()
            context.load_cert_chain(file.name)
        return context


def run(
    argv: Sequence[str], *, stdin: str | None = None, env: Mapping[str, str] | None = None, deadline: float = DEADLINE
) -> "subprocess.CompletedProcess[str]":
    """A program with a deadline; fails with the command and what it printed so far."""
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=deadline, env=env, **source)
    except subprocess.TimeoutExpired as late:
        printed = b"\n".join(filter(None, (late.stdout, late.stderr))).decode(errors="replace")
        raise AssertionError(f"{' '.join(argv)} has not ended after {deadline:g} s:\n{printed}") from None
