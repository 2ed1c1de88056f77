"""All Slurm clusters that the operator serves, by the key of their Controller."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

from kubeslurm.engine.key import Key
from kubeslurm.slurm import tokens
from kubeslurm.slurm.jobs import JobStore
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.session import Http
from kubeslurm.slurm.rest.transport import Admit, Transport
from kubeslurm.slurm.snapshot import Snapshot


class OwnToken:
    """The operator's own token, renewed before it expires and when the key changes."""

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock
        self._token = ""
        self._renew_at = 0.0

    def __call__(self) -> str:
        now = self._clock()
        if not self._token or now >= self._renew_at:
            lifetime = tokens.OWN_LIFETIME
            self._token = tokens.mint(self._key, tokens.OWN_USER, now=now, lifetime=lifetime)
            self._renew_at = now + tokens.RENEW_AT * lifetime
        return self._token

    def rotate(self, key: bytes) -> None:
        """Signs with this key from now on."""
        if key != self._key:
            self._key = key
            self._token = ""


class SlurmCluster:
    """One Slurm cluster: its client, and what is known of its nodes and jobs."""

    def __init__(
        self,
        key: Key,
        servers: Sequence[str],
        jwt_key: bytes,
        *,
        name: str = "",
        http: Http | None = None,
        admit: Admit | None = None,
    ) -> None:
        self.key = key
        self.token = OwnToken(jwt_key)
        self.client = SlurmClient(Transport(servers, self.token, cluster=name, http=http, admit=admit))
        self.snapshot = Snapshot(self.client)
        self.jobs = JobStore(self.client)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self.snapshot.run(), name=f"slurm snapshot {self.key}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.client.close()


class Clusters:
    """Registry of the clusters that are served; the Controller's reconciler keeps it current."""

    def __init__(self, *, http: Http | None = None, admit: Admit | None = None) -> None:
        self._clusters: dict[Key, SlurmCluster] = {}
        self._listeners: list[Callable[[SlurmCluster], None]] = []
        self._http = http
        self._admit = admit

    def of(self, key: Key) -> SlurmCluster | None:
        """The cluster of a Controller, or None while no slurmrestd is known for it."""
        return self._clusters.get(key)

    def __iter__(self) -> Iterator[SlurmCluster]:
        return iter(tuple(self._clusters.values()))

    def on_start(self, listener: Callable[[SlurmCluster], None]) -> None:
        """Calls the listener once for every cluster that is served, now or later, so that it can watch its stores."""
        self._listeners.append(listener)
        for cluster in self:
            listener(cluster)

    def update(self, key: Key, servers: Sequence[str], jwt_key: bytes, name: str = "") -> SlurmCluster:
        """Serves the cluster through these slurmrestd (base URLs) with tokens of this key from now on.

        Only answers of a slurmrestd whose cluster has this name count; empty: of any.
        """
        cluster = self._clusters.get(key)
        if cluster is None:
            cluster = self._clusters[key] = SlurmCluster(
                key, servers, jwt_key, name=name, http=self._http, admit=self._admit
            )
            for listener in self._listeners:
                listener(cluster)
            cluster.start()
        else:
            if cluster.client.transport.use(servers):
                cluster.snapshot.poll_soon()
            cluster.token.rotate(jwt_key)
            cluster.client.transport.cluster = name
        return cluster

    async def remove(self, key: Key) -> None:
        """Stops serving a cluster."""
        cluster = self._clusters.pop(key, None)
        if cluster is not None:
            await cluster.stop()

    async def close(self) -> None:
        await asyncio.gather(*(self.remove(key) for key in tuple(self._clusters)))
