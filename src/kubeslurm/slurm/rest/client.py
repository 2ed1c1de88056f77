"""Slurm's REST API as the few verbs that we need."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.errors import NotFound, NotServed, Refused, SlurmError, Unreachable
from kubeslurm.slurm.rest.answers import ALREADY_OVER, BAD_TRANSITION, UNKNOWN_JOB, Fault, decode
from kubeslurm.slurm.rest.models import Job, JobState, LiveConf, Node, Nodes, NodeUpdate, Number, Ping
from kubeslurm.slurm.rest.session import Reply
from kubeslurm.slurm.rest.transport import Transport

LIST_DEADLINE = 60.0
RECONFIGURE_DEADLINE = 30.0
# What Slurm warns of when it truly has no nodes, as every cluster of dynamic nodes does at first.
NO_NODES = "No nodes to dump"

_JOB_ID = re.compile(r"(\d+)(?:\+(\d+))?")

T = TypeVar("T")


class _NodeBody(msgspec.Struct):
    nodes: tuple[Node, ...]


class _NodesBody(msgspec.Struct):
    # Nothing has a default: an answer that lacks the list must not read as a cluster without nodes.
    nodes: tuple[Node, ...]
    last_update: Number
    warnings: tuple[Fault, ...] = ()


class _JobsBody(msgspec.Struct):
    jobs: tuple[Job, ...]


class _StateRow(msgspec.Struct):
    job_id: str
    state: tuple[str, ...] = ()


class _StatesBody(msgspec.Struct):
    jobs: tuple[_StateRow, ...] = ()


class _CancelFault(msgspec.Struct):
    code: int = 0
    string: str = ""


class _CancelRow(msgspec.Struct):
    error: _CancelFault = msgspec.field(default_factory=_CancelFault)


class _CancelBody(msgspec.Struct):
    status: tuple[_CancelRow, ...] = ()


class _PingBody(msgspec.Struct):
    pings: tuple[Ping, ...] = ()


class _ConfMeta(msgspec.Struct):
    checksum: int = msgspec.field(name="HashValue", default=0)
    read_at: int = msgspec.field(name="BOOT_TIME", default=0)
    path: str = msgspec.field(name="SLURM_CONF", default="")
    version: str = msgspec.field(name="SLURM_VERSION", default="")


class _ConfBody(msgspec.Struct):
    slurm_conf: dict[str, Any]
    slurm_conf_meta: _ConfMeta


class _Statistics(msgspec.Struct):
    req_time: Number


class _DiagBody(msgspec.Struct):
    statistics: _Statistics


class _Release(msgspec.Struct):
    release: str = ""


class _Meta(msgspec.Struct):
    slurm: _Release = msgspec.field(default_factory=_Release)


class _MetaBody(msgspec.Struct):
    meta: _Meta = msgspec.field(default_factory=_Meta)


class SlurmClient:
    """Reads and changes one Slurm cluster; every call ends by its deadline with a value or a SlurmError."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def nodes(self, since: int | None = None) -> Nodes | None:
        """All nodes, or None when nothing changed since the `last_update` of an earlier list."""
        params = {} if since is None else {"update_time": str(since)}
        response = await self.transport.call("GET", "nodes/", params=params, deadline=LIST_DEADLINE)
        if response.status == 304:
            if since is None:
                raise Unreachable("slurmrestd answered that nothing changed, without having been told since when")
            return None
        body = _decode(response, _NodesBody)
        if body.warnings and (body.nodes or any(each.description != NO_NODES for each in body.warnings)):
            raise Unreachable(f"Slurm's list of nodes may not be whole: {body.warnings[0].text}")
        return Nodes(nodes=body.nodes, last_update=body.last_update.value or 0)

    async def node(self, name: str) -> Node | None:
        """One node as it is now, or None when Slurm says that it does not know it."""
        try:
            body = await self._get(f"node/{quote(name, safe='')}", _NodeBody)
        except NotFound:
            return None
        for node in body.nodes:
            if node.name == name:
                return node
        raise Unreachable(f"slurmrestd answered without node {name}, and without saying that there is none")

    async def update_nodes(self, names: Iterable[str], update: NodeUpdate) -> None:
        """Applies one change to all named nodes. One that Slurm refuses does not hold up the others; then raises."""
        body = {key: value for key, value in msgspec.to_builtins(update).items() if value is not None}
        for batch in hostlist.chunks(names):
            try:
                await self._post_nodes(batch, body)
            except (NotFound, Refused):
                if len(batch) == 1:
                    raise
                await _each(batch, lambda name: self._post_nodes([name], body))

    async def delete_nodes(self, names: Iterable[str]) -> None:
        """Deletes node records; one that is already gone counts as deleted. Refused when a job is still there."""
        for batch in hostlist.chunks(names):
            try:
                await self.transport.call("DELETE", f"node/{quote(hostlist.compress(batch), safe='')}")
            except NotFound:
                if len(batch) > 1:
                    await _each(batch, lambda name: self.delete_nodes([name]))
            except Refused:
                if len(batch) == 1:
                    raise
                await _each(batch, lambda name: self.delete_nodes([name]))

    async def ping(self) -> tuple[Ping, ...]:
        """Every slurmctld of the cluster; answers at once even when none of them runs."""
        return (await self._get("ping/", _PingBody)).pings

    async def jobs_state(self) -> tuple[JobState, ...]:
        """Id and state of every job. The full job list is never read: it costs gigabytes in slurmrestd."""
        rows = (await self._get("jobs/state/", _StatesBody)).jobs
        return tuple(JobState(job_id=number, state=row.state) for row in rows for number in _numbers(row.job_id))

    async def job(self, job_id: int) -> Job | None:
        """One job, or None when Slurm does not know it (any more)."""
        try:
            body = await self._get(f"job/{job_id}", _JobsBody)
        except NotFound:
            return None
        # The id of an array answers with all of its tasks.
        return next((job for job in body.jobs if job.job_id == job_id), None)

    async def requeue_job(self, job_id: int) -> None:
        """Puts a job back into the queue; Slurm offers this by REST from v0.0.45 on."""
        try:
            await self.transport.call("GET", f"job/{job_id}/requeue", changes=True)
        except (NotFound, NotServed) as error:
            if await self.job(job_id) is not None:
                raise Refused(0, "this Slurm cannot requeue jobs by REST; it needs 26.05 or newer") from error

    async def cancel_job(self, job_id: int) -> None:
        """Ends a job; one that is over or unknown counts as ended."""
        response = await self.transport.call("DELETE", f"job/{job_id}")
        for row in _decode(response, _CancelBody).status:
            if row.error.code not in (0, ALREADY_OVER, UNKNOWN_JOB):
                raise Refused(row.error.code, row.error.string)

    async def reconfigure(self) -> None:
        """Makes slurmctld and all slurmd read their configuration again.

        A slurmctld in the foreground answers before it reads: look at `conf` afterwards.
        """
        await self.transport.call("GET", "reconfigure/", deadline=RECONFIGURE_DEADLINE, changes=True)

    async def conf(self) -> LiveConf | None:
        """slurmctld's live configuration, or None where the API version has no such endpoint (before v0.0.45)."""
        try:
            body = await self._get("conf", _ConfBody)
        except NotServed:
            return None
        return LiveConf(values=body.slurm_conf, **msgspec.structs.asdict(body.slurm_conf_meta))

    async def now(self) -> int:
        """What slurmctld's clock shows, in seconds: times that Slurm wrote are compared with this one."""
        time = (await self._get("diag/", _DiagBody)).statistics.req_time.value
        if time is None:
            raise Unreachable("slurmrestd answered without slurmctld's time")
        return time

    async def release(self) -> str:
        """The Slurm release that serves the API, such as 26.05.5."""
        return (await self._get("ping/", _MetaBody)).meta.slurm.release

    async def close(self) -> None:
        await self.transport.close()

    async def _get(self, path: str, body: type[T]) -> T:
        return _decode(await self.transport.call("GET", path), body)

    async def _post_nodes(self, names: Sequence[str], body: dict[str, Any]) -> None:
        try:
            await self.transport.call("POST", "nodes/", body={"name": [hostlist.compress(names)], **body})
        except Refused as error:
            # Resuming a node that is fine already: what was wanted holds, and the other nodes of the call are changed.
            if error.number != BAD_TRANSITION or tuple(body.get("state", ())) not in (("RESUME",), ("UNDRAIN",)):
                raise


def _decode(response: Reply, body: type[T]) -> T:
    try:
        return decode(response.body, body)
    except msgspec.DecodeError as error:
        raise SlurmError(f"slurmrestd answered {response.path} in a form that is not understood: {error}") from error


def _numbers(text: str) -> Iterator[int]:
    """The ids that a row of the light list may mean; an unreadable one is left out, or it would hide all others."""
    # "7_3" is task 3 of an array: 7 is its own id once it runs, and the array's while it waits.
    found = _JOB_ID.match(text)
    if found is not None:
        yield int(found[1])
        # "12+1" is a part of a heterogeneous job, whose own id may be 13: one id too many does no harm.
        if int(found[2] or 0):
            yield int(found[1]) + int(found[2])


async def _each(names: Sequence[str], act: Callable[[str], Awaitable[None]]) -> None:
    trouble: SlurmError | None = None
    for name in names:
        try:
            await act(name)
        except (NotFound, Refused) as error:
            trouble = trouble or error
    if trouble is not None:
        raise trouble
