"""Leader election: only the replica that holds the Lease and renews it in time may act."""

import asyncio
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from kubeslurm.api.kinds import LEASE
from kubeslurm.api.meta import Tree
from kubeslurm.kube import metrics
from kubeslurm.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, Transient
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.objects import micro_time
from kubeslurm.kube.transport.connection import Connection, Request

log = structlog.get_logger("kubeslurm.kube")


class LeadershipLost(Exception):  # noqa: N818 (an end, not a fault)
    """The Lease was not renewed in time; the process must end."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds: how long a Lease is valid, how long we may act without a renewal, how often we try."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Leader:
    """Acquires and renews a Lease; opens the fence for writes only while no other replica can have acquired it.

    The Lease of another holder counts as expired when it has not changed for its duration, on our own clock: the time
    that it carries, and wall clocks, do not matter.
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
        self._held: Tree | None = None  # the Lease as we wrote it last: renewing it needs no read
        self._pause = self._timing.retry
        self._observed: tuple[str, str] = ("", "")
        self._observed_at = 0.0

    async def acquired(self) -> None:
        """Wait until this replica is the leader; the manager's gate."""
        await self._acquired.wait()

    async def run(self) -> None:
        """Acquire the Lease when it is free, then renew it; raises LeadershipLost when that fails for too long."""
        try:
            while not await self._try():  # noqa: ASYNC110 (the Lease lives on the server)
                await asyncio.sleep(self._pause)
            log.info("became leader", lease=f"{self._namespace}/{self._name}", identity=self.identity)
            metrics.LEADER.set(1)
            self._acquired.set()
            while self._fence.open and self.holder == self.identity:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._fence.remaining):
                        await asyncio.sleep(self._timing.retry)
                        # Past the deadline another replica may have led meanwhile: do not renew.
                        if self._fence.open:
                            await self._try()
            self._fence.close()
            raise LeadershipLost(f"the Lease {self._namespace}/{self._name} was not renewed in time")
        finally:
            metrics.LEADER.set(0)

    async def release(self) -> None:
        """Release the Lease at the end of a graceful stop, so that the next replica need not wait."""
        self._fence.close()
        if self.holder != self.identity:
            return
        try:
            lease = await self._read()
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time()}
                await self._write("PUT", lease)
                log.info("Lease released", lease=f"{self._namespace}/{self._name}")
        except ApiError as error:
            log.warning("the Lease was not released; it will expire", reason=str(error))

    async def _try(self) -> bool:
        """One attempt to acquire or renew; the Lease counts as valid from before the request was sent."""
        started = self._clock()
        held, self._held = self._held, None
        self._pause = self._timing.retry
        try:
            lease = held or await self._read()
            if lease is None:
                lease = await self._write("POST", self._new())
            elif held or self._is_free(lease["spec"]):
                lease = await self._write("PUT", self._claimed(lease))
            else:
                return False
        except (Conflict, AlreadyExists):
            return False
        except ApiError as error:
            log.warning("the Lease could not be read or written", reason=str(error))
            if isinstance(error, Transient):
                # No longer than a Lease is valid: a pause of hours would leave the cluster without a leader.
                self._pause = max(self._pause, min(error.after, self._timing.lease))
            return False
        self.holder, self._held = self.identity, lease
        self._fence.extend(started + self._timing.renew, started + self._timing.lease)
        return True

    def _is_free(self, spec: Tree) -> bool:
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        now = self._clock()
        if (holder, renewed) != self._observed:
            if holder not in (self.identity, self.holder):
                log.info("waiting for the Lease: another operator is at work", holder=holder)
            self._observed, self._observed_at = (holder, renewed), now
        self.holder = holder
        duration = float(spec.get("leaseDurationSeconds") or self._timing.lease)
        return holder in ("", self.identity) or now >= self._observed_at + duration

    def _new(self) -> Tree:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": self._spec(micro_time(), 0),
        }

    def _claimed(self, lease: Tree) -> Tree:
        spec = lease["spec"]
        transitions = int(spec.get("leaseTransitions") or 0)
        if spec.get("holderIdentity") == self.identity:
            lease["spec"] = self._spec(spec.get("acquireTime") or micro_time(), transitions)
        else:
            lease["spec"] = self._spec(micro_time(), transitions + 1)
        return lease

    def _spec(self, acquired: str, transitions: int) -> Tree:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._timing.lease)),
            "acquireTime": acquired,
            "renewTime": micro_time(),
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
