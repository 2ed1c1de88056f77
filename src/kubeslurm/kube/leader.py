"""One replica acts at a time: whoever holds the Lease and renews it in time."""

import asyncio
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import structlog

from kubeslurm.api.kinds import LEASE
from kubeslurm.api.meta import Tree
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, Transient
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.transport.connection import Connection, Request

log = structlog.get_logger("kubeslurm.kube")


class LeadershipLost(Exception):  # noqa: N818 (an end, not a fault)
    """The Lease could not be renewed in time; the process must end."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds: how long a Lease counts, how long we may act without a renewal, how often we try."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Leader:
    """Takes and renews a Lease; opens the fence for writes only for as long as nobody else can have taken it.

    Another holder's Lease is judged by how long we have seen it unchanged, on our own clock: what time it carries, and
    what wall clocks say, does not matter.
    """

    def __init__(
        self,
        connection: Connection,
        fence: Fence,
        *,
        namespace: str,
        name: str = "slurm-operator",
        identity: str = "",
        timing: Timing | None = None,
    ) -> None:
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.holder = ""
        self._connection = connection
        self._fence = fence
        self._namespace = namespace
        self._name = name
        self._timing = timing or Timing()
        self._clock: Callable[[], float] = fence.clock
        self._acquired = asyncio.Event()
        self._held: Tree | None = None  # the Lease as we wrote it last: renewing it needs no reading
        self._pause = self._timing.retry
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = 0.0

    @property
    def is_leader(self) -> bool:
        return self._fence.open

    async def acquired(self) -> None:
        """Wait until we lead; the manager's gate."""
        await self._acquired.wait()

    async def run(self) -> None:
        """Take the Lease when it is free, then renew it; raises LeadershipLost when that fails for too long."""
        try:
            while not await self._try():  # noqa: ASYNC110 (the Lease lives on the server)
                await asyncio.sleep(self._pause)
            log.info("leading", lease=f"{self._namespace}/{self._name}", identity=self.identity)
            metrics.LEADER.set(1)
            self._acquired.set()
            while self._fence.open and self.holder == self.identity:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._fence.remaining):
                        await asyncio.sleep(self._timing.retry)
                        # Slept through the deadline, another may have led meanwhile: not ours to renew any more.
                        if self._fence.open:
                            await self._try()
            self._fence.close()
            raise LeadershipLost(f"the Lease {self._namespace}/{self._name} was not renewed in time")
        finally:
            metrics.LEADER.set(0)

    async def release(self) -> None:
        """Give the Lease up at the end of a graceful stop, so that the next replica need not wait."""
        self._fence.close()
        if self.holder != self.identity:
            return
        try:
            lease = await self._read()
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _stamp()}
                await self._write("PUT", lease)
                log.info("lease released", lease=f"{self._namespace}/{self._name}")
        except ApiError as error:
            log.warning("lease not released; it will expire", reason=str(error))

    async def _try(self) -> bool:
        """One attempt to take or renew; the time until which it counts starts before the request does."""
        started = self._clock()
        held, self._held = self._held, None
        self._pause = self._timing.retry
        try:
            lease = held or await self._read()
            if lease is None:
                lease = await self._write("POST", self._fresh())
            elif held or self._is_free(lease["spec"]):
                lease = await self._write("PUT", self._claimed(lease))
            else:
                return False
        except (Conflict, AlreadyExists):
            return False
        except ApiError as error:
            log.warning("lease not reached", reason=str(error))
            if isinstance(error, Transient):
                # No longer than a Lease counts: a server that asks for hours would leave the cluster without a leader.
                self._pause = max(self._pause, min(error.after, self._timing.lease))
            return False
        self.holder, self._held = self.identity, lease
        self._fence.extend(started + self._timing.renew, started + self._timing.lease)
        return True

    def _is_free(self, spec: Tree) -> bool:
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        now = self._clock()
        if (holder, renewed) != self._seen:
            if holder not in (self.identity, self.holder):
                log.info("waiting for the Lease: another operator is at work", holder=holder)
            self._seen, self._seen_at = (holder, renewed), now
        self.holder = holder
        duration = float(spec.get("leaseDurationSeconds") or self._timing.lease)
        return holder in ("", self.identity) or now >= self._seen_at + duration

    def _fresh(self) -> Tree:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": self._spec(_stamp(), 0),
        }

    def _claimed(self, lease: Tree) -> Tree:
        spec = lease["spec"]
        transitions = int(spec.get("leaseTransitions") or 0)
        if spec.get("holderIdentity") == self.identity:
            lease["spec"] = self._spec(spec.get("acquireTime") or _stamp(), transitions)
        else:
            lease["spec"] = self._spec(_stamp(), transitions + 1)
        return lease

    def _spec(self, acquired: str, transitions: int) -> Tree:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._timing.lease)),
            "acquireTime": acquired,
            "renewTime": _stamp(),
            "leaseTransitions": transitions,
        }

    async def _read(self) -> Tree | None:
        request = Request(verb="get", kind=LEASE.kind, path=LEASE.path(self._namespace, self._name))
        try:
            lease: Tree = msgspec.json.decode(
                await self._connection.write_unfenced(request, timeout=self._timing.retry * 2)
            )
        except NotFound:
            return None
        lease.setdefault("spec", {})
        return lease

    async def _write(self, method: str, lease: Tree) -> Tree:
        name = self._name if method == "PUT" else ""
        request = Request(
            verb="update" if name else "create",
            kind=LEASE.kind,
            method=method,
            path=LEASE.path(self._namespace, name),
            body=msgspec.json.encode(lease),
        )
        written: Tree = msgspec.json.decode(
            await self._connection.write_unfenced(request, timeout=self._timing.retry * 2)
        )
        return written


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
