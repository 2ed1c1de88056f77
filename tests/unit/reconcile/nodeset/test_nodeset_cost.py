"""What a NodeSet costs in requests: counted, since seconds depend on the machine."""

from collections import Counter
from typing import Any

import pytest

from kubeslurm.api.kinds import NODE, NODESET
from kubeslurm.api.meta import Tree
from kubeslurm.build.worker import pod as worker
from kubeslurm.decide.nodeset.slurm import updates
from kubeslurm.engine.key import Key
from tests.support.world import SET, World

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


async def test_a_cordon_of_many_costs_one_call_for_each_node_and_its_end_one_for_all(world: World) -> None:
    calls = len(world.slurm.calls)
    hosts = [f"host-{number}" for number in range(20)]
    for host in hosts:
        world.cordon(host)
    await world.turn(3)
    written = [call for call in world.slurm.calls[calls:] if call != "nodes"]
    assert len(written) == len(hosts)
    calls = len(world.slurm.calls)
    for host in hosts:
        world.cordon(host, cordoned=False)
    await world.turn(3)
    written = [call for call in world.slurm.calls[calls:] if call != "nodes"]
    assert len(written) == 1  # a list shows beforehand whose drains they are


async def test_a_drain_is_read_back_at_once_and_a_comment_is_not() -> None:
    world = World(hosts=3)
    world.nodeset(replicas=3)
    await world.turn(5)
    assert not any(call.startswith("node ") for call in world.slurm.calls)
    calls = len(world.slurm.calls)
    world.cordon("host-0")
    await world.reconciler.reconcile(SET)
    assert [call.split()[0] for call in world.slurm.calls[calls:]] == ["update", "node"]


async def test_what_was_written_to_slurm_is_not_written_again_before_it_was_read(world: World) -> None:
    for cordoned in (True, False):
        calls = len(world.slurm.calls)
        for number in range(20):
            world.cordon(f"host-{number}", cordoned=cordoned)
        for _ in range(3):
            await world.reconciler.reconcile(SET)
        written = [call for call in world.slurm.calls[calls:] if call.startswith("update")]
        assert len(written) == (20 if cordoned else 1)  # the reasons differ, the end of them does not
        await world.turn(2)


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


async def test_a_pass_asks_slurm_for_nothing_that_the_last_poll_has_shown(world: World) -> None:
    world.slurm.submit("gpu-0", "gpu-1")
    await world.turn(3)
    calls = len(world.slurm.calls)
    for _ in range(3):
        await world.reconciler.reconcile(SET)
    assert set(world.slurm.calls[calls:]) <= {"jobs/state"}  # whether a job began or ended, now and then


async def test_passes_do_not_read_pending_jobs(world: World) -> None:
    pending, running = world.slurm.queue(), world.slurm.submit("gpu-0")
    await world.turn(3)
    assert f"job {running}" in world.slurm.calls
    assert f"job {pending}" not in world.slurm.calls


async def test_passes_share_what_they_worked_out_about_unchanged_workers(world: World) -> None:
    nodeset = world.caches.store(NODESET).get(SET)
    assert nodeset is not None
    first, second = (world.reconciler.observer.read(nodeset).facts.workers for _ in range(2))
    assert all(one is other for one, other in zip(first, second, strict=True))


async def test_pods_are_built_for_machines_without_a_worker_only(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    build = worker.pod

    def counted(*args: Any) -> Tree:
        built.append(args[2].node)
        return build(*args)

    monkeypatch.setattr(worker, "pod", counted)
    world = World(hosts=4)
    world.nodeset(replicas=0, scalingMode="DaemonSet")
    await world.turn(5)
    assert sorted(built) == [f"host-{number}" for number in range(4)]
    assert world.status()["desired"] == 4


async def test_many_comments_are_written_over_several_passes_and_hold_up_no_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(updates, "STATELESS_CALLS", 10)
    world = World(hosts=WORKERS)
    world.nodeset(replicas=WORKERS)
    await world.turn(2)
    calls = len(world.slurm.calls)
    world.cordon("host-0")
    await world.reconciler.reconcile(SET)
    written = [call for call in world.slurm.calls[calls:] if call.startswith("update")]
    assert "DRAIN" in written[0]
    assert len(written) <= 11
    await world.turn(WORKERS)
    assert all(node.comment for node in world.slurm.records.values())
