"""What one pass over a NodeSet leaves to the next: failures, records, and what has changed meanwhile."""

import asyncio
from typing import Any

import pytest

from kubeslurm.api.kinds import CONTROLLER_REVISION, NODESET, POD, SECRET, Kind
from kubeslurm.kube.errors import ApiError, Forbidden, Unavailable
from kubeslurm.reconcile.nodeset.slurm.nodes import READ_BACK, SlurmNodes
from kubeslurm.slurm.errors import Refused
from tests.support.world import CLUSTER, SET, World


async def test_a_pass_that_is_put_off_does_not_reset_the_back_off(world: World) -> None:
    world.reconciler.interval._cooldown.start(SET, 100)
    found = await world.reconciler.reconcile(SET)
    assert found is not None
    assert not found.resets_backoff


async def test_slurm_learns_of_a_cordon_while_pods_are_still_being_patched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = asyncio.Event()
    update_nodes, patch = world.slurm.update_nodes, world.kube.patch

    async def update(*given: Any) -> None:
        await update_nodes(*given)
        written.set()

    async def patch_late(kind: Kind[Any], *given: Any, **how: Any) -> Any:
        if kind is POD:
            await written.wait()
        return await patch(kind, *given, **how)

    monkeypatch.setattr(world.slurm, "update_nodes", update)
    monkeypatch.setattr(world.kube, "patch", patch_late)
    world.cordon("host-0")
    async with asyncio.timeout(60):
        await world.reconciler.reconcile(SET)
    assert [name for name, node in world.slurm.records.items() if node.drain] == ["gpu-0"]


async def test_records_that_are_gone_in_spite_of_a_refusal_are_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many records Slurm keeps one; the others must not lend their drain to the next workers."""
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    ghosts = [f"ghost-{number}" for number in range(READ_BACK + 4)]
    for name in ghosts:
        world.slurm.register(name)
    await cluster.snapshot.poll()

    async def delete_all_but_one(_names: Any) -> None:
        for name in ghosts[1:]:
            del world.slurm.records[name]
        raise Refused(2016, "Requested nodes are busy")

    monkeypatch.setattr(world.slurm, "delete_nodes", delete_all_but_one)
    await SlurmNodes(world.kube).delete_records(cluster, ghosts)  # type: ignore[arg-type]
    assert [name for name in ghosts if name in cluster.snapshot.store] == ghosts[:1]


async def test_facts_are_read_again_once_slurm_is_away(world: World) -> None:
    nodeset = world.caches.store(NODESET).get(SET)
    assert nodeset is not None
    observed = world.reconciler.observer.read(nodeset)
    assert world.reconciler.observer.current(nodeset, observed) is observed.facts
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    later = cluster.snapshot._clock() + 1000
    cluster.snapshot._clock = lambda: later
    assert world.reconciler.observer.current(nodeset, observed) is not observed.facts


@pytest.mark.parametrize("kind", [SECRET, CONTROLLER_REVISION])
async def test_facts_are_read_again_once_a_secret_or_the_history_changed(world: World, kind: Kind[Any]) -> None:
    nodeset = world.caches.store(NODESET).get(SET)
    assert nodeset is not None
    observed = world.reconciler.observer.read(nodeset)
    world.kube.put(kind, {"metadata": {"name": "another", "namespace": "slurm"}})
    assert world.reconciler.observer.current(nodeset, observed) is not observed.facts


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unavailable(0, "Timeout", "no answer in time"), "RequestFailed"),
        (Forbidden(403, "Forbidden", "a policy forbids it"), "Rejected"),
    ],
    ids=["timeout", "refusal"],
)
async def test_a_timeout_of_the_api_server_is_not_reported_as_a_refusal(
    world: World, monkeypatch: pytest.MonkeyPatch, error: ApiError, reason: str
) -> None:
    patch = world.kube.patch

    async def fail(kind: Kind[Any], *given: Any, **how: Any) -> Any:
        if kind is POD:
            raise error
        return await patch(kind, *given, **how)

    monkeypatch.setattr(world.kube, "patch", fail)
    world.cordon("host-0")
    await world.reconciler.reconcile(SET)
    assert world.reason("Degraded") == reason
    assert world.message("Degraded") == str(error)


async def test_what_is_remembered_of_a_pod_goes_with_it(world: World) -> None:
    observer = world.reconciler.observer
    world.restart_container("gpu-0")
    del world.slurm.records["gpu-1"]
    await world.turn()
    for name in ("gpu-0", "gpu-1"):
        world.kill_pod(name)
    assert (observer._workers, observer.sightings._started, observer.sightings._missing) == ({}, {}, {})


async def test_a_restarted_slurmd_is_missed_anew(world: World) -> None:
    """What was missed of the slurmd before says nothing about the one that runs now."""
    await world.turn(2)
    del world.slurm.records["gpu-0"]
    await world.turn()
    missing = world.reconciler.observer.sightings._missing
    (before,) = missing.values()
    world.restart_container("gpu-0")
    del world.slurm.records["gpu-0"]
    await world.turn()
    (after,) = missing.values()
    assert (before[0], after[0]) == ("containerd://1", "containerd://2")
