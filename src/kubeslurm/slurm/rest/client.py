"""What is read from slurmctld and changed in it."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.errors import NotFound, NotServed, Refused, SlurmError, Unreachable
from kubeslurm.slurm.rest import bodies
from kubeslurm.slurm.rest.answers import ALREADY_OVER, BAD_TRANSITION, UNKNOWN_JOB
from kubeslurm.slurm.rest.models import Job, JobState, Node, Nodes, NodeUpdate, Ping, RunningConf
from kubeslurm.slurm.rest.transport import Transport

LIST_DEADLINE = 60.0
RECONFIGURE_DEADLINE = 30.0
# The warning of a cluster that has no nodes, as every cluster of dynamic nodes at first.
NO_NODES = "No nodes to dump"

_JOB_ID = re.compile(r"(\d+)(?:\+(\d+))?")

T = TypeVar("T")


class SlurmClient:
    """Reads and changes one Slurm cluster; every call returns a value or raises a SlurmError by its deadline."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def nodes(self, since: int | None = None) -> Nodes | None:
        """All nodes, or None when nothing changed since the `last_update` of an earlier list."""
        params = {} if since is None else {"update_time": str(since)}
        reply = await self.transport.call("GET", "nodes/", params=params, deadline=LIST_DEADLINE)
        if reply.status == 304:
            if since is None:
                raise Unreachable("slurmrestd answered that nothing has changed to a request for everything")
            return None
        body = bodies.read(reply, bodies.NodesBody)
        if body.warnings and (body.nodes or any(each.description != NO_NODES for each in body.warnings)):
            raise Unreachable(f"Slurm's list of nodes may be incomplete: {body.warnings[0].text}")
        return Nodes(nodes=body.nodes, last_update=body.last_update.value or 0)

    async def node(self, name: str) -> Node | None:
        """One node as it is now; None when Slurm says that it has no such node."""
        try:
            body = await self._get(f"node/{quote(name, safe='')}", bodies.NodeBody)
        except NotFound:
            return None
        for node in body.nodes:
            if node.name == name:
                return node
        raise Unreachable(f"slurmrestd answered neither with node {name} nor that there is none")

    async def update_nodes(self, names: Iterable[str], update: NodeUpdate) -> None:
        """Applies one change to all named nodes. When Slurm refuses some, the others are changed, and it raises."""
        body = {key: value for key, value in msgspec.to_builtins(update).items() if value is not None}
        for batch in hostlist.chunks(names):
            try:
                await self._post_nodes(batch, body)
            except (NotFound, Refused):
                if len(batch) == 1:
                    raise
                await _each(batch, lambda name: self._post_nodes([name], body))

    async def delete_nodes(self, names: Iterable[str]) -> None:
        """Deletes node records; a missing one counts as deleted. Raises Refused while a job is on a node."""
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

    async def delete_reservation(self, name: str) -> None:
        """Deletes a reservation; a missing one counts as deleted. Raises Refused while jobs use it."""
        try:
            await self.transport.call("DELETE", f"reservation/{quote(name, safe='')}")
        except (NotFound, NotServed, Refused):
            listed = (await self._get("reservations/", bodies.ReservationsBody)).reservations
            if name in {each.name for each in listed}:
                raise

    async def ping(self) -> tuple[Ping, ...]:
        """Every slurmctld of the cluster, running or not; the answer comes at once."""
        return (await self._get("ping/", bodies.PingBody)).pings

    async def jobs_state(self) -> tuple[JobState, ...]:
        """Id and state of every job. `GET jobs` is never used: it costs slurmrestd gigabytes."""
        rows = (await self._get("jobs/state/", bodies.JobStatesBody)).jobs
        return tuple(JobState(job_id=number, state=row.state) for row in rows for number in _job_ids(row.job_id))

    async def job(self, job_id: int) -> Job | None:
        """One job; None when Slurm does not know it, or not any more."""
        try:
            body = await self._get(f"job/{job_id}", bodies.JobsBody)
        except NotFound:
            return None
        # The id of an array answers with all of its tasks.
        return next((job for job in body.jobs if job.job_id == job_id), None)

    async def requeue_job(self, job_id: int) -> None:
        """Puts a job back into the queue; the REST API has this from v0.0.45 on."""
        try:
            await self.transport.call("GET", f"job/{job_id}/requeue", changes=True)
        except (NotFound, NotServed) as error:
            if await self.job(job_id) is not None:
                raise Refused(0, "this Slurm cannot requeue jobs by REST; it needs 26.05 or newer") from error

    async def cancel_job(self, job_id: int) -> None:
        """Cancels a job; one that is over or unknown counts as cancelled."""
        reply = await self.transport.call("DELETE", f"job/{job_id}")
        for row in bodies.read(reply, bodies.CancelBody).status:
            if row.error.code not in (0, ALREADY_OVER, UNKNOWN_JOB):
                raise Refused(row.error.code, row.error.string)

    async def reconfigure(self) -> None:
        """Makes slurmctld and all slurmd read their configuration again.

        A slurmctld in the foreground answers before it reads: only `conf` tells what it runs with afterwards.
        """
        await self.transport.call("GET", "reconfigure/", deadline=RECONFIGURE_DEADLINE, changes=True)

    async def conf(self) -> RunningConf | None:
        """The configuration that slurmctld runs with; None where the API does not have it, before v0.0.45."""
        try:
            body = await self._get("conf", bodies.ConfBody)
        except NotServed:
            return None
        return RunningConf(values=body.slurm_conf, **msgspec.structs.asdict(body.slurm_conf_meta))

    async def now(self) -> int:
        """slurmctld's time in seconds, to compare with times that Slurm has written."""
        time = (await self._get("diag/", bodies.DiagBody)).statistics.req_time.value
        if time is None:
            raise Unreachable("slurmrestd answered without slurmctld's time")
        return time

    async def release(self) -> str:
        """The release of the slurmrestd that answers, such as 26.05.5."""
        return (await self._get("ping/", bodies.MetaBody)).meta.slurm.release

    async def close(self) -> None:
        await self.transport.close()

    async def _get(self, path: str, body: type[T]) -> T:
        return bodies.read(await self.transport.call("GET", path), body)

    async def _post_nodes(self, names: Sequence[str], body: dict[str, Any]) -> None:
        try:
            await self.transport.call("POST", "nodes/", body={"name": [hostlist.compress(names)], **body})
        except Refused as error:
            # A node that needs no resume is not a failure, and Slurm has changed the other nodes of the call.
            if error.number != BAD_TRANSITION or tuple(body.get("state", ())) not in (("RESUME",), ("UNDRAIN",)):
                raise


def _job_ids(text: str) -> Iterator[int]:
    """The ids that a row of `jobs/state` may stand for; none for an unreadable row, so that the others still count."""
    # "7_3" is task 3 of an array: 7 is the task's own id once it has started, and the array's while it is pending.
    found = _JOB_ID.match(text)
    if found is not None:
        yield int(found[1])
        # "12+1" is a component of a heterogeneous job, whose own id may be 13: an id too many does no harm.
        if int(found[2] or 0):
            yield int(found[1]) + int(found[2])


async def _each(names: Sequence[str], act: Callable[[str], Awaitable[None]]) -> None:
    """Acts on every name and then raises the first failure."""
    failure: SlurmError | None = None
    for name in names:
        try:
            await act(name)
        except (NotFound, Refused) as error:
            failure = failure or error
    if failure is not None:
        raise failure
