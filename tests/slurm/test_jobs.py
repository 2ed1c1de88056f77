"""Jobs, and nodes with jobs on them, through the REST client in every API version that we support."""

import pytest

from kubeslurm.slurm.errors import Refused
from kubeslurm.slurm.jobs import BY_STATE, JobStore
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import NodeUpdate
from tests.slurm.cluster import Cluster, read


async def test_a_busy_node_is_draining_and_is_not_deleted(client: SlurmClient, cluster: Cluster) -> None:
    job = cluster.submit()
    running = await client.job(job)
    assert running is not None
    name = running.nodes
    await client.update_nodes([name], NodeUpdate.drain("busy"))
    node = await read(client, name)
    assert node.drain
    assert node.busy
    assert not node.drained
    with pytest.raises(Refused) as refusal:
        await client.delete_nodes([name])
    assert refusal.value.number == 2016
    assert await client.node(name) is not None


async def test_a_suspended_job_leaves_its_node_looking_drained_and_is_listed_on_it(
    client: SlurmClient, cluster: Cluster
) -> None:
    job = cluster.submit()
    running = await client.job(job)
    assert running is not None
    name = running.nodes
    await client.update_nodes([name], NodeUpdate.drain("busy"))
    cluster.controller.run("scontrol", "suspend", str(job))
    jobs = JobStore(client)
    await jobs.update()
    assert (await read(client, name)).drained
    assert [each.job_state for each in jobs.on(name)] == [("SUSPENDED",)]
    assert jobs.unplaced() == frozenset()
    cluster.controller.run("scontrol", "resume", str(job))
    assert not (await read(client, name)).drained
    assert await jobs.still_on(job, name) is not None


async def test_jobs_are_listed_read_and_cancelled(client: SlurmClient, cluster: Cluster) -> None:
    # A job without a limit has that of a year if it was started by backfill, and none if not.
    job = cluster.submit("--time=90")
    states = {row.job_id: row.state for row in await client.jobs_state()}
    assert states[job] == ("RUNNING",)
    found = await client.job(job)
    assert found is not None
    assert (found.name, found.partition, found.job_state) == ("wrap", "all", ("RUNNING",))
    assert found.start_time.value
    assert found.time_limit.value == 90
    cluster.controller.run("scontrol", "update", f"jobid={job}", "timelimit=UNLIMITED")
    unlimited = await client.job(job)
    assert unlimited is not None
    assert unlimited.time_limit.infinite
    await client.cancel_job(job)
    cancelled = await client.job(job)
    assert cancelled is not None
    assert "CANCELLED" in cancelled.job_state
    await client.cancel_job(job)
    await client.cancel_job(99999)
    assert await client.job(99999) is None


async def test_tasks_of_an_array_are_found_by_their_own_id(client: SlurmClient, cluster: Cluster) -> None:
    cluster.submit("--array=1-2", tasks=2)
    running = [row.job_id for row in await client.jobs_state() if row.state == ("RUNNING",)]
    jobs = [await client.job(number) for number in running]
    assert sorted(job.nodes for job in jobs if job) == ["n1", "n2"]


async def test_the_job_store_has_pending_and_running_jobs_with_their_reasons(
    client: SlurmClient, cluster: Cluster
) -> None:
    running, held = cluster.submit("--nodes=2"), cluster.submit_held("--nodes=1", "--time=90")
    jobs = JobStore(client)
    await jobs.update(pending=True)
    assert jobs.complete
    assert jobs.pending_complete
    assert [[job.job_id for job in jobs.on(node)] for node in ("n1", "n2")] == [[running], [running]]
    assert jobs.store[running].state_reason == "None"
    (pending,) = jobs.store.by(BY_STATE, "PENDING")
    assert (pending.job_id, pending.state_reason, pending.priority.value) == (held, "JobHeldUser", 0)
    assert (pending.user_name, pending.node_count.value, pending.time_limit.value) == ("root", 1, 90)
    assert pending.tres_req_str.startswith("cpu=")


async def test_a_job_is_requeued_where_slurm_offers_it(cluster: Cluster) -> None:
    job = cluster.submit()
    old, new = cluster.lab.client(["v0.0.44"]), cluster.lab.client(["v0.0.45"])
    with pytest.raises(Refused, match="requeue jobs by REST"):
        await old.requeue_job(job)
    await new.update_nodes(["n1", "n2"], NodeUpdate.drain("so that it does not start again"))
    await new.requeue_job(job)
    found = await new.job(job)
    assert found is not None
    assert "RUNNING" not in found.job_state
    await new.requeue_job(99999)  # unknown: nothing is left to requeue
    await old.close()
    await new.close()


async def test_a_fenced_node_gives_up_its_job_at_once(client: SlurmClient, cluster: Cluster) -> None:
    job = cluster.submit()
    running = await client.job(job)
    assert running is not None
    await client.update_nodes([running.nodes], NodeUpdate.down("pod is gone"))
    assert (await read(client, running.nodes)).down
    again = await client.job(job)
    assert again is not None
    assert "RUNNING" not in again.job_state or again.nodes != running.nodes
    await client.update_nodes([running.nodes], NodeUpdate.resume())
    assert not (await read(client, running.nodes)).down
