"""What an admin decided in Slurm outlives whatever we do."""

import msgspec
import pytest

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.nodeset.slurm.nodes import READ_BACK, SlurmNodes
from kubeslurm.slurm.errors import Unreachable
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.support.world import CLUSTER, World

GPU_0 = Key("slurm", "gpu-0")


async def test_an_admins_down_outlives_a_rollout(world: World) -> None:
    """A rollout drains the node over the admin's reason and takes its pod; the next one must not get jobs."""
    await world.turn(2)
    node = world.slurm.records["gpu-0"]
    world.slurm.records["gpu-0"] = msgspec.structs.replace(node, state=("DOWN",), reason="bad PSU")
    before = world.kube.trees[POD.plural, GPU_0]["metadata"]["uid"]
    world.nodeset(replicas=2, extraConf="Weight=7")
    await world.turn(12)
    assert world.kube.trees[POD.plural, GPU_0]["metadata"]["uid"] != before
    assert world.slurm.records["gpu-0"].reason == "bad PSU"
    assert world.slurm.records["gpu-0"].down


@pytest.mark.parametrize("others", [0, READ_BACK])
async def test_a_drain_that_an_admin_set_a_moment_ago_is_not_lifted(world: World, others: int) -> None:
    """The last poll shows a node that we may resume; an admin has drained it since."""
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    more = [f"other-{number}" for number in range(others)]
    for name in more:
        world.slurm.register(name)
        world.slurm.drain(name, "slurm-operator: for a while")
    world.slurm.drain("gpu-0", "bad fan")
    nodes = SlurmNodes(world.kube)  # type: ignore[arg-type]
    await nodes.update(cluster, dict.fromkeys(["gpu-0", *more], NodeUpdate.resume()))
    assert world.slurm.records["gpu-0"].reason == "bad fan"
    assert [name for name, node in world.slurm.records.items() if node.drain] == ["gpu-0"]


async def test_nothing_is_lifted_while_slurm_does_not_say_whose_drains_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    names = [f"other-{number}" for number in range(READ_BACK + 1)]
    for name in names:
        world.slurm.register(name)
        world.slurm.drain(name, "slurm-operator: for a while")
    await cluster.snapshot.poll()

    async def silent(_since: int | None = None) -> None:
        raise Unreachable("no answer")

    monkeypatch.setattr(world.slurm, "nodes", silent)
    nodes = SlurmNodes(world.kube)  # type: ignore[arg-type]
    await nodes.update(cluster, dict.fromkeys(names, NodeUpdate.resume()))
    assert all(world.slurm.records[name].drain for name in names)


async def test_a_fence_keeps_the_reason_of_an_admins_drain(world: World) -> None:
    await world.turn(2)
    job = world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "bad GPU")
    await world.turn()
    world.kill_pod("gpu-0")
    await world.turn(4)
    assert world.slurm.requeued == [job]
    assert world.slurm.records["gpu-0"].reason == "bad GPU"
    assert world.slurm.records["gpu-0"].drain


async def test_a_fence_keeps_an_admins_reason_inside_one_of_ours(world: World) -> None:
    await world.turn(2)
    job = world.slurm.submit("gpu-0")
    world.slurm.drain("gpu-0", "slurm-operator: Node (host-0) was cordoned (was: bad GPU)")
    world.kill_pod("gpu-0")
    cluster = world.clusters.of(CLUSTER)
    assert cluster is not None
    await SlurmNodes(world.kube).fence_orphans(cluster, [world.slurm.records["gpu-0"]])  # type: ignore[arg-type]
    assert world.slurm.requeued == [job]
    assert world.slurm.records["gpu-0"].reason.endswith("(was: bad GPU)")
