"""The REST client against real daemons, in every API version that we support."""

import asyncio

import pytest

from kubeslurm.slurm import conf
from kubeslurm.slurm.errors import NotFound, NotServed, Refused, Unauthorized
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.slurm.cluster import Cluster, read
from tests.slurm.lab import CONF, idle
from tests.support.waiting import WITHIN


async def test_the_newest_version_on_offer_is_chosen(cluster: Cluster) -> None:
    client = cluster.lab.client()
    assert await client.transport.version() == "v0.0.45"
    assert (await client.release()).startswith("26.05")
    await client.close()


async def test_a_server_without_a_known_version_says_so(cluster: Cluster) -> None:
    client = cluster.lab.client(["v0.0.41"])
    with pytest.raises(NotServed, match="none of the API versions"):
        await client.ping()
    await client.close()


async def test_nodes_are_listed_with_what_we_need_to_know(client: SlurmClient) -> None:
    answer = await client.nodes()
    assert answer is not None
    node = next(node for node in answer.nodes if node.name == "n1")
    assert "IDLE" in node.state
    assert not node.busy
    assert node.features == ("w",)
    assert node.slurmd_start_time.value


async def test_an_unchanged_list_is_not_sent_again(client: SlurmClient) -> None:
    answer = await client.nodes()
    async with asyncio.timeout(WITHIN):
        # Slurm counts changes in whole seconds, and sends the list again while it could miss one.
        while answer is not None:
            await asyncio.sleep(0.1)
            answer = await client.nodes(since=answer.last_update)


async def test_a_node_is_drained_and_undrained(client: SlurmClient) -> None:
    await client.update_nodes(["n1"], NodeUpdate.drain("for a test"))
    node = await read(client, "n1")
    assert node.drained
    assert node.ours
    assert node.reason == "slurm-operator: for a test"
    await client.update_nodes(["n1"], NodeUpdate(state=("UNDRAIN",), reason=""))
    node = await read(client, "n1")
    assert not node.drain
    assert node.reason == ""


async def test_many_nodes_change_in_one_call(client: SlurmClient) -> None:
    await client.update_nodes(["n1", "n2"], NodeUpdate(comment="both"))
    assert [(await read(client, name)).comment for name in ("n1", "n2")] == ["both", "both"]


async def test_features_and_comment_are_written(client: SlurmClient) -> None:
    features = ("w", "k8s/a")
    await client.update_nodes(["n2"], NodeUpdate(comment='{"a":1}', features=features, features_act=features))
    node = await read(client, "n2")
    assert (node.comment, node.features, node.active_features) == ('{"a":1}', features, features)


async def test_resuming_a_node_that_is_fine_succeeds(client: SlurmClient) -> None:
    await client.update_nodes(["n1", "n2"], NodeUpdate.resume())
    states = [set((await read(client, name)).state) for name in ("n1", "n2")]
    assert all("IDLE" in state and state.isdisjoint({"DRAIN", "DOWN"}) for state in states)


async def test_one_unknown_node_does_not_hold_up_the_others(client: SlurmClient) -> None:
    with pytest.raises(NotFound):
        await client.update_nodes(["absent", "n1", "zzz"], NodeUpdate(comment="still done"))
    assert (await read(client, "n1")).comment == "still done"


async def test_an_unknown_node_reads_as_none(client: SlurmClient) -> None:
    assert await client.node("absent") is None


async def test_a_wrong_state_is_refused(client: SlurmClient) -> None:
    with pytest.raises(Refused):
        await client.update_nodes(["n1"], NodeUpdate(state=("BOGUS",)))


async def test_records_are_deleted_and_a_missing_one_counts_as_deleted(client: SlurmClient, cluster: Cluster) -> None:
    cluster.controller.run("scontrol", "create", "NodeName=x[1-3]", "NodeAddr=127.0.0.1", "State=EXTERNAL", "CPUs=1")
    await client.delete_nodes(["x1", "x2", "x3", "x4"])
    assert [await client.node(name) for name in ("x1", "x2", "x3")] == [None, None, None]


async def test_a_token_of_another_key_is_unauthorized(cluster: Cluster) -> None:
    client = cluster.lab.client(key=b"k" * 32)
    with pytest.raises(Unauthorized):
        await client.nodes()
    assert [ping.responding for ping in await client.ping()] == [False]
    await client.close()


async def test_the_running_configuration_is_known_by_its_checksum(cluster: Cluster) -> None:
    client = cluster.lab.client()
    running = await client.conf()
    assert running is not None
    assert running.checksum == conf.checksum(CONF)
    assert running.values["MaxNodeCount"] == 1024
    await client.close()
    older = cluster.lab.client(["v0.0.44"])
    assert await older.conf() is None
    await older.close()


async def test_a_good_configuration_is_taken_over_and_a_bad_one_refused(client: SlurmClient, cluster: Cluster) -> None:
    current = cluster.lab.client()
    good = CONF + "MaxJobCount=4321\n# ä\n"
    cluster.lab.write("slurm.conf", good)
    await client.reconfigure()
    await runs_with(current, good)

    cluster.lab.write("slurm.conf", CONF + "Bogus=1\n")
    with pytest.raises(Refused):
        await client.reconfigure()
    await runs_with(current, good)

    cluster.lab.write("slurm.conf", CONF)
    await client.reconfigure()
    await runs_with(current, CONF)
    await current.close()
    idle(cluster.controller, "n1", "n2")


async def runs_with(client: SlurmClient, text: str) -> None:
    """Waits until slurmctld runs with this configuration."""
    async with asyncio.timeout(WITHIN):
        while (running := await client.conf()) is None or running.checksum != conf.checksum(text):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_a_reservation_is_deleted_and_a_missing_one_counts_as_deleted(
    client: SlurmClient, cluster: Cluster
) -> None:
    options = ("starttime=now+1hour", "duration=10", "nodes=n1", "users=root", "flags=maint,ignore_jobs")
    cluster.controller.run("scontrol", "create", "reservation", "reservation=SlurmOperatorMaint-gpu", *options)
    await client.delete_reservation("SlurmOperatorMaint-gpu")
    assert "SlurmOperatorMaint" not in cluster.controller.run("scontrol", "show", "reservation")
    await client.delete_reservation("SlurmOperatorMaint-gpu")
