"""What becomes of jobs when the partition that they are in is taken out of slurm.conf, or is closed first."""

from collections.abc import AsyncIterator

import pytest

from kubeslurm.slurm.conf.records import closed, records
from kubeslurm.slurm.rest.client import SlurmClient
from tests.slurm.cluster import Cluster
from tests.slurm.lab import CONF

LINE = "PartitionName=leaving Nodes=w MaxTime=UNLIMITED State=UP"


@pytest.fixture
async def leaving(cluster: Cluster) -> AsyncIterator[SlurmClient]:
    """The client of a cluster that has another partition until the test removes it."""
    client = cluster.lab.client()
    cluster.lab.write("slurm.conf", f"{CONF}{LINE}\n")
    await client.reconfigure()
    yield client
    cluster.lab.write("slurm.conf", CONF)
    await client.reconfigure()
    await client.close()


async def state(client: SlurmClient, job: int) -> tuple[str, ...]:
    found = await client.job(job)
    assert found is not None
    return found.job_state


async def test_slurm_ends_running_and_pending_jobs_of_a_partition_that_is_removed(
    cluster: Cluster, leaving: SlurmClient
) -> None:
    running, pending = cluster.submit("--partition=leaving"), cluster.submit_held("--partition=leaving")
    cluster.lab.write("slurm.conf", CONF)
    await leaving.reconfigure()
    assert "NODE_FAIL" in await state(leaving, running)
    assert "PENDING" not in await state(leaving, pending)


async def test_a_closed_partition_keeps_its_jobs_and_takes_no_others(cluster: Cluster, leaving: SlurmClient) -> None:
    running, pending = cluster.submit("--partition=leaving"), cluster.submit_held("--partition=leaving")
    (record,) = records({"slurm.conf": LINE})
    cluster.lab.write("slurm.conf", f"{CONF}{closed(record).text}\n")
    await leaving.reconfigure()
    assert await state(leaving, running) == ("RUNNING",)
    assert await state(leaving, pending) == ("PENDING",)
    with pytest.raises(AssertionError, match="not available"):
        cluster.submit_held("--partition=leaving")
