"""HTTP to whichever slurmrestd answers: deadlines, fail-over, and the API version that each replica serves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kubeslurm.slurm.errors import NotServed, SlurmError, Unauthorized, Unreachable
from kubeslurm.slurm.rest.answers import judge
from kubeslurm.slurm.rest.session import Http, LineError, Reply, Session, UnsentError

# Newest first. The structs of models.py have been compared with v0.0.44 and v0.0.45. Older versions lack endpoints
# that we need.
VERSIONS = ("v0.0.46", "v0.0.45", "v0.0.44")
DEADLINE = 8.0

# Given the time that a change to Slurm may take, says how much of it is allowed, or raises when none may start.
Admit = Callable[[float], float]


class _Call(msgspec.Struct, frozen=True):
    method: str
    path: str
    params: dict[str, str] | None = None
    content: bytes | None = None
    changes: bool = False
    deadline: float = DEADLINE


class Transport:
    """Sends requests to one of several equal slurmrestd, staying with one that works."""

    def __init__(
        self,
        servers: Sequence[str],
        token: Callable[[], str],
        *,
        http: Http | None = None,
        versions: Sequence[str] = VERSIONS,
        admit: Admit | None = None,
    ) -> None:
        self.token = token
        self._servers: list[str] = []
        self._versions: dict[str, str] = {}
        self._candidates = tuple(versions)
        self._admit = admit
        self._http = http or Session()
        self._closed = False
        self.use(servers)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def use(self, servers: Sequence[str]) -> bool:
        """Replaces the list of replicas; the one in use stays first if it is still listed. Says whether one is new."""
        before = set(self._servers)
        current = self._servers[0] if self._servers else None
        self._servers = sorted((server.rstrip("/") for server in servers), key=lambda server: server != current)
        self._versions = {server: self._versions[server] for server in self._servers if server in self._versions}
        return not before.issuperset(self._servers)

    async def version(self) -> str:
        """The API version in use, found out if need be."""
        await self.call("GET", "ping/")
        return self._versions[self._servers[0]]

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: Any = None,
        deadline: float = DEADLINE,
        changes: bool = False,
    ) -> Reply:
        """One call to `/slurm/<version>/<path>`; raises the SlurmError that the answer stands for.

        `changes` marks a GET that is no read: Slurm has some. Whatever changes something must be admitted.
        """
        if self._closed:
            raise Unreachable("the connection to this cluster was closed, because no RestApi serves it any more")
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with asyncio.timeout(deadline):
                return await self._try_each(_Call(method, path, params, content, changes or method != "GET", deadline))
        except TimeoutError as late:
            raise Unreachable(f"no answer from Slurm within {deadline:g} s") from late

    async def close(self) -> None:
        self._closed = True
        await self._http.close()

    async def _try_each(self, call: _Call) -> Reply:
        trouble: SlurmError = Unreachable("no slurmrestd is known for this cluster")
        answers = 0
        for server in tuple(self._servers):
            try:
                version = self._versions.get(server) or await self._probe(server)
                response = await self._carry_out(call, f"{server}/slurm/{version}/{call.path}")
            except SlurmError as error:  # from the probe: the call itself was not sent
                trouble = error
                self._leave(server)
                continue
            except LineError as error:
                trouble = Unreachable(f"{server} does not answer: {error}")
                self._leave(server)
                # The request may have been carried out before the line broke: only reads go to the next replica then.
                if call.changes and not isinstance(error, UnsentError):
                    break
                continue
            except (asyncio.CancelledError, TimeoutError):
                self._leave(server)
                raise
            failure = judge(call.method, response.status, response.body)
            if failure is None:
                return response
            trouble, answers = failure, answers + 1
            self._learn(server, response.status, failure)
            if answers > 1 or not _elsewhere(call, failure):
                break
        raise trouble

    async def _carry_out(self, call: _Call, url: str) -> Reply:
        if not call.changes or self._admit is None:
            return await self._send(call, url)
        # Asked for at the last moment: finding a replica and its version takes time.
        async with asyncio.timeout(self._admit(call.deadline)):
            return await self._send(call, url)

    def _learn(self, server: str, status: int, failure: SlurmError) -> None:
        if isinstance(failure, NotServed):
            self._versions.pop(server, None)  # another release may be running there by now
        elif status >= 500 or isinstance(failure, Unreachable | Unauthorized):
            # It may hold an old key or an old slurm.conf: another replica is asked first from now on.
            self._leave(server)

    async def _probe(self, server: str) -> str:
        for version in self._candidates:
            response = await self._send(_Call("GET", "ping/"), f"{server}/slurm/{version}/ping/")
            failure = judge("GET", response.status, response.body)
            if failure is None:
                self._versions[server] = version
                return version
            if not isinstance(failure, NotServed):
                raise failure
        raise NotServed(
            f"{server} serves none of the API versions {', '.join(self._candidates)}; Slurm 25.11 or newer is needed"
        )

    async def _send(self, call: _Call, url: str) -> Reply:
        headers = {"X-SLURM-USER-TOKEN": self.token()}
        if call.content is not None:
            headers["Content-Type"] = "application/json"
        return await self._http.send(
            call.method, url, params=call.params or {}, headers=headers, body=call.content or b"", changes=call.changes
        )

    def _leave(self, server: str) -> None:
        # Calls that failed at the same time must not bring the sick one back to the front.
        if self._servers and self._servers[0] == server:
            self._servers.append(self._servers.pop(0))


def _elsewhere(call: _Call, failure: SlurmError) -> bool:
    """Whether another replica may do better; a change goes there only if it cannot have been carried out here."""
    if isinstance(failure, NotServed):
        return False
    return isinstance(failure, Unauthorized) or (isinstance(failure, Unreachable) and not call.changes)
