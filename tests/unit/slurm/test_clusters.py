"""The registry of Slurm clusters."""

import asyncio

import pytest

from kubeslurm.engine.key import Key
from kubeslurm.slurm import tokens
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.errors import Unreachable
from tests.unit.slurm.slurmrestd import EMPTY, Slurmrestd

ONE = Key("ns", "one")
KEY, OTHER = b"a key of at least thirty-two bytes", b"another of at least thirty-two bytes"


def registry() -> tuple[Clusters, Slurmrestd]:
    server = Slurmrestd()
    body = {"nodes": [{"name": "n"}], "last_update": {"set": True, "infinite": False, "number": 5}, **EMPTY}
    server.answers = {"GET nodes/": (200, body), "GET nodes/?update_time=5": (304, b"")}
    return Clusters(http=server.http), server


@pytest.mark.looptime
async def test_a_cluster_is_polled_from_the_moment_it_is_known() -> None:
    clusters, _ = registry()
    assert clusters.of(ONE) is None
    cluster = clusters.update(ONE, ["http://a"], KEY)
    assert clusters.of(ONE) is cluster
    await asyncio.wait_for(cluster.snapshot.store.wait_synced(), 5)
    assert cluster.snapshot.get("n") is not None
    await clusters.close()
    assert list(clusters) == []


async def test_a_known_cluster_takes_new_replicas_and_keys_in_place() -> None:
    clusters, server = registry()
    first = clusters.update(ONE, ["http://a"], KEY)
    assert clusters.update(ONE, ["http://b"], OTHER) is first
    assert first.client.transport.servers == ("http://b",)
    await first.client.nodes()
    assert tokens.read(OTHER, server.tokens[-1]).sun == "slurm"
    await clusters.close()


@pytest.mark.looptime
async def test_a_new_replica_is_asked_at_once_whatever_was_waited_for_before() -> None:
    clusters, server = registry()
    server.down = {"a"}
    cluster = clusters.update(ONE, ["http://a"], KEY)
    await asyncio.sleep(60)
    assert not cluster.snapshot.fresh()
    clusters.update(ONE, ["http://b"], KEY)
    await asyncio.sleep(0.1)
    assert cluster.snapshot.get("n") is not None
    await clusters.close()


async def test_listeners_hear_of_every_cluster_once() -> None:
    clusters, _ = registry()
    heard: list[Key] = []

    def listen(cluster: SlurmCluster) -> None:
        heard.append(cluster.key)

    clusters.update(ONE, ["http://a"], KEY)
    clusters.on_start(listen)
    clusters.update(ONE, ["http://a"], KEY)
    clusters.update(Key("ns", "two"), ["http://a"], KEY)
    assert heard == [ONE, Key("ns", "two")]
    await clusters.close()


async def test_a_removed_cluster_is_no_longer_asked() -> None:
    clusters, _ = registry()
    cluster = clusters.update(ONE, ["http://a"], KEY)
    await clusters.remove(ONE)
    await clusters.remove(ONE)
    assert clusters.of(ONE) is None
    with pytest.raises(Unreachable, match="closed"):
        await cluster.client.nodes()
