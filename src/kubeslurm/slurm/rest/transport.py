"""Requests to one of several slurmrestd: deadlines, fail-over, and the API version that each of them serves."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from kubeslurm.slurm.errors import NotServed, SlurmError, Unauthorized, Unreachable, WrongCluster
from kubeslurm.slurm.rest.answers import failure_of
from kubeslurm.slurm.rest.session import ConnectionLostError, Http, NotSentError, Reply, Session

# Newest first. The structs of models.py were compared with v0.0.44 and v0.0.45; older versions lack endpoints.
VERSIONS = ("v0.0.46", "v0.0.45", "v0.0.44")
DEADLINE = 8.0
# Seconds after which a replica has to say again whose it is: the address of a pod that is gone may be given to another.
IDENTITY = 5.0

# The two halves of the API: slurmctld's and slurmdbd's. A slurmrestd serves both in the same versions.
Api = Literal["slurm", "slurmdb"]
SLURM: Api = "slurm"
SLURMDB: Api = "slurmdb"

# Takes the seconds that a change may last and returns how many are allowed; raises when no change may start.
Admit = Callable[[float], float]


class _Call(msgspec.Struct, frozen=True):
    method: str
    api: Api
    path: str
    params: dict[str, str] | None = None
    content: bytes | None = None
    changes: bool = False
    deadline: float = DEADLINE


class Transport:
    """Sends requests to one of several equal slurmrestd, and keeps to one that works."""

    def __init__(
        self,
        servers: Sequence[str],
        token: Callable[[], str],
        *,
        cluster: str = "",
        http: Http | None = None,
        versions: Sequence[str] = VERSIONS,
        admit: Admit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = token
        self.cluster = cluster  # empty: not known
        self._servers: list[str] = []
        self._versions: dict[str, str] = {}
        self._identified_at: dict[str, float] = {}
        self._clock = clock
        self._candidates = tuple(versions)
        self._admit = admit
        self._http = http or Session()
        self._closed = False
        self.use(servers)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def use(self, servers: Sequence[str]) -> bool:
        """Replaces the list of replicas; the one in use stays first if it is listed. Returns whether one is new."""
        before = set(self._servers)
        current = self._servers[0] if self._servers else None
        self._servers = sorted((server.rstrip("/") for server in servers), key=lambda server: server != current)
        self._versions = {server: self._versions[server] for server in self._servers if server in self._versions}
        self._identified_at = {server: at for server, at in self._identified_at.items() if server in self._servers}
        return not before.issuperset(self._servers)

    async def version(self) -> str:
        """The API version in use."""
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
        api: Api = SLURM,
    ) -> Reply:
        """One call to `/<api>/<version>/<path>`; raises the SlurmError that the answer stands for.

        `changes` marks a GET that changes something: Slurm has some. Every change needs the consent of `admit`.
        """
        if self._closed:
            raise Unreachable("the connection to this cluster was closed, because no RestApi serves it any more")
        content = None if body is None else msgspec.json.encode(body)
        call = _Call(method, api, path, params, content, changes or method != "GET", deadline)
        try:
            async with asyncio.timeout(deadline):
                return await self._try_each(call)
        except TimeoutError as late:
            raise Unreachable(f"no answer from Slurm within {deadline:g} s") from late

    async def close(self) -> None:
        self._closed = True
        await self._http.close()

    async def _try_each(self, call: _Call) -> Reply:
        failure: SlurmError = Unreachable("no slurmrestd is known for this cluster")
        answers = 0
        for server in tuple(self._servers):
            try:
                version = self._known_version(server) or await self._probe(server)
                reply = await self._send_admitted(call, server, version)
            except SlurmError as error:  # from the probe: the call itself was not sent
                failure = error
                self._move_last(server)
                continue
            except ConnectionLostError as error:
                failure = Unreachable(f"{server} does not answer: {error}")
                self._move_last(server)
                # The request may have been carried out before the connection broke: then only reads may be repeated.
                if call.changes and not isinstance(error, NotSentError):
                    break
                continue
            except (asyncio.CancelledError, TimeoutError):
                self._move_last(server)
                raise
            answered = failure_of(call.method, reply.status, reply.body, self.cluster)
            if answered is None:
                return reply
            failure, answers = answered, answers + 1
            self._note_failure(server, reply.status, failure)
            if answers > 1 or not _may_repeat(call, failure):
                break
        raise failure

    async def _send_admitted(self, call: _Call, server: str, version: str) -> Reply:
        if not call.changes or self._admit is None:
            return await self._send(call, server, version)
        # As late as possible: finding a replica and its version has taken time.
        async with asyncio.timeout(self._admit(call.deadline)):
            return await self._send(call, server, version)

    def _note_failure(self, server: str, status: int, failure: SlurmError) -> None:
        if isinstance(failure, WrongCluster):
            self._identified_at.pop(server, None)
        if isinstance(failure, NotServed):
            self._versions.pop(server, None)  # another release may run there by now
        elif status >= 500 or isinstance(failure, Unreachable | Unauthorized):
            # It may have an old key or an old slurm.conf: from now on another replica is asked first.
            self._move_last(server)

    def _known_version(self, server: str) -> str:
        """The version that the replica serves; empty when it is not known, or not lately known to be of this cluster.

        Not every answer says whose it is: that nothing has changed is said without a body.
        """
        late = self._clock() - self._identified_at.get(server, float("-inf")) > IDENTITY
        return "" if late and self.cluster else self._versions.get(server, "")

    async def _probe(self, server: str) -> str:
        known = self._versions.get(server)
        for version in sorted(self._candidates, key=lambda each: each != known):
            reply = await self._send(_Call("GET", SLURM, "ping/"), server, version)
            failure = failure_of("GET", reply.status, reply.body, self.cluster)
            if failure is None:
                self._versions[server] = version
                self._identified_at[server] = self._clock()
                return version
            if not isinstance(failure, NotServed):
                raise failure
        raise NotServed(
            f"{server} serves none of the API versions {', '.join(self._candidates)}; Slurm 25.11 or newer is needed"
        )

    async def _send(self, call: _Call, server: str, version: str) -> Reply:
        url = f"{server}/{call.api}/{version}/{call.path}"
        headers = {"X-SLURM-USER-TOKEN": self.token()}
        if call.content is not None:
            headers["Content-Type"] = "application/json"
        return await self._http.send(
            call.method, url, params=call.params or {}, headers=headers, body=call.content or b"", changes=call.changes
        )

    def _move_last(self, server: str) -> None:
        # Only if it is first: a second call that failed there must not move the next replica.
        if self._servers and self._servers[0] == server:
            self._servers.append(self._servers.pop(0))


def _may_repeat(call: _Call, failure: SlurmError) -> bool:
    """Whether the call may go to another replica: a change only if it cannot have been carried out."""
    if isinstance(failure, NotServed):
        return False
    return isinstance(failure, Unauthorized) or (isinstance(failure, Unreachable) and not call.changes)
