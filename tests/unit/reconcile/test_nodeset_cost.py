"""What a NodeSet costs in requests: counted, since seconds depend on the machine."""

from collections import Counter

import pytest

from kubeslurm.api.kinds import NODE
from kubeslurm.engine.key import Key
from tests.support.world import World

WORKERS = 40


@pytest.fixture
async def world() -> World:
    made = World(hosts=WORKERS)
    made.nodeset(replicas=WORKERS)
    await made.turn(5)
    assert made.status()["slurmIdle"] == WORKERS
    return made


def pod_writes(world: World, since: int = 0) -> Counter[str]:
    return Counter(write.rpartition(" ")[0] for write in world.kube.writes[since:] if " pods " in write)


async def test_a_worker_costs_two_writes_and_one_call_to_slurm(world: World) -> None:
    assert pod_writes(world) == {"create pods": WORKERS, "patch pods": WORKERS}
    assert sum(1 for call in world.slurm.calls if call.startswith("update")) == WORKERS
    assert not any(call.startswith("node ") for call in world.slurm.calls)


async def test_a_rolling_update_costs_five_writes_per_worker_and_drains_each_node_once(world: World) -> None:
    writes, calls = len(world.kube.writes), len(world.slurm.calls)
    world.nodeset(replicas=WORKERS, extraConf="Weight=7")
    await world.turn(40)
    assert world.status()["updatedReplicas"] == WORKERS
    assert world.status()["slurmIdle"] == WORKERS
    assert pod_writes(world, writes).total() <= 5 * WORKERS
    drains = Counter(call for call in world.slurm.calls[calls:] if "DRAIN" in call)
    assert len(drains) == WORKERS
    assert set(drains.values()) == {1}


async def test_a_cordon_costs_one_call_for_each_node_and_an_uncordon_two(world: World) -> None:
    calls = len(world.slurm.calls)
    hosts = [f"host-{number}" for number in range(20)]
    for host in hosts:
        world.cordon(host)
    await world.turn(3)
    told = [call for call in world.slurm.calls[calls:] if call != "nodes"]
    assert len(told) == len(hosts)
    calls = len(world.slurm.calls)
    for host in hosts:
        world.cordon(host, cordoned=False)
    await world.turn(3)
    told = [call for call in world.slurm.calls[calls:] if call != "nodes"]
    assert sum(1 for call in told if call.startswith("node ")) == len(hosts)  # each is looked at before it is resumed
    assert len(told) <= len(hosts) + 1  # and all are resumed at once


async def test_scale_in_deletes_all_records_in_one_call(world: World) -> None:
    calls = len(world.slurm.calls)
    world.nodeset(replicas=WORKERS - 20)
    await world.turn(4)
    assert len(world.slurm.records) == WORKERS - 20
    assert sum(1 for call in world.slurm.calls[calls:] if call.startswith("delete")) == 1


async def test_what_a_node_reports_of_itself_is_no_reason_for_a_write(world: World) -> None:
    writes = len(world.kube.writes)
    tree = world.kube.trees[NODE.plural, Key("", "host-0")]
    world.kube.put(NODE, tree | {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    await world.turn(2)
    assert len(world.kube.writes) == writes
