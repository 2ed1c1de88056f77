"""The shared view of nodes on real daemons, and what is left of it when slurmctld is gone."""

import asyncio
from pathlib import Path

from kubeslurm.slurm.errors import Unreachable
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import NodeUpdate
from kubeslurm.slurm.snapshot import Snapshot
from tests.slurm.cluster import Cluster
from tests.slurm.hosts import Host
from tests.slurm.lab import CONF, Lab, Roots, answers


async def test_the_snapshot_follows_and_knows_its_age(client: SlurmClient, cluster: Cluster) -> None:
    now = 0.0
    snapshot = Snapshot(client, clock=lambda: now)
    changes: list[str] = []
    snapshot.store.subscribe(lambda key, old, new: changes.append(key))
    assert not snapshot.fresh()
    await snapshot.poll()
    assert snapshot.fresh()
    assert sorted(changes) == ["n1", "n2"]
    changes.clear()
    await client.update_nodes(["n1"], NodeUpdate(comment=f"seen by {await client.transport.version()}"))
    await snapshot.refresh(["n1"])
    assert changes == ["n1"]
    assert snapshot.absences("absent") == 1
    now = 60.0
    assert not snapshot.fresh()


def test_a_dead_controller_is_unreachable_and_the_snapshot_keeps_what_it_knew(roots: Roots, tmp_path: Path) -> None:
    lab = Lab(roots, tmp_path)
    try:
        asyncio.run(_with_a_dead_controller(lab))
    finally:
        lab.close()


async def _with_a_dead_controller(lab: Lab) -> None:
    # slurmrestd tries that long to reach slurmctld.
    lab.write("slurm.conf", CONF.replace("MessageTimeout=100", "MessageTimeout=10"))
    controller: Host = lab.slurmctld()
    answers(controller)
    controller.run("scontrol", "create", "NodeName=x1", "NodeAddr=127.0.0.1", "State=EXTERNAL", "CPUs=1")
    lab.slurmrestd()
    client = lab.client()
    snapshot = Snapshot(client)
    await snapshot.poll()
    assert controller.terminate() == 0
    assert [ping.responding for ping in await client.ping()] == [False]
    failure, _ = await asyncio.gather(client.node("x1"), snapshot.poll(), return_exceptions=True)
    assert isinstance(failure, Unreachable)
    assert not snapshot.fresh()
    assert snapshot.failure
    assert "x1" in snapshot.store
    await client.close()
