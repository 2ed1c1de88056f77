"""The REST client against real daemons, in every API version that we support."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubeslurm.slurm import conf
from kubeslurm.slurm.client import SlurmClient
from kubeslurm.slurm.errors import NotFound, NotServed, Refused, Unauthorized, Unreachable
from kubeslurm.slurm.models import Node, NodeUpdate
from kubeslurm.slurm.snapshot import Snapshot
from tests.slurm.hosts import PATIENCE, Host, until
from tests.slurm.lab import CONF, Lab, Roots, account, answers, idle

SCRIPT = "--wrap=touch /run/begun-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} && exec sleep 3600"


class Cluster:
    """One running cluster that the tests of this file share."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.controller = lab.slurmctld()
        answers(self.controller)
        self.workers = {name: lab.slurmd(name) for name in ("n1", "n2")}
        self.rest = lab.slurmrestd()
        self.used = False
        idle(self.controller, "n1", "n2")

    def submit(self, *options: str, tasks: int = 1) -> int:
        """Starts a job, or the tasks of an array, on a node each, and waits until the scripts are at work there."""
        self.used = True
        job = self.controller.run("sbatch", "--parsable", "--exclusive", *options, "-o", "/dev/null", SCRIPT).strip()
        # Slurm says that a job runs before it has begun; a signal that comes in between is lost.
        until(
            lambda: len(self.begun(job)) == tasks,
            f"job {job} does not run on {tasks} nodes",
            evidence=lambda: account(self.controller),
        )
        return int(job)

    def begun(self, job: str) -> list[str]:
        """Names of the nodes on which the script has begun."""
        return [name for name, host in self.workers.items() if f"begun-{job}" in host.run("ls", "/run").split()]

    def quiet(self) -> None:
        """Ends every job and waits until the nodes are as they were."""

        def over() -> bool:
            self.controller.run("scancel", "--user=root")
            return not self.controller.run("squeue", "-h").strip()

        until(over, "there are still jobs", evidence=lambda: account(self.controller))
        self.controller.run("scontrol", "update", "nodename=n[1-2]", "state=undrain")
        idle(self.controller, "n1", "n2")
        self.used = False


@pytest.fixture(scope="module")
def shared(roots: Roots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    lab = Lab(roots, tmp_path_factory.mktemp("lab"))
    try:
        yield Cluster(lab)
    finally:
        lab.close()


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """The cluster, which each test finds without jobs."""
    yield shared
    if shared.used:
        shared.quiet()


@pytest.fixture(params=["v0.0.44", "v0.0.45"])
async def client(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncIterator[SlurmClient]:
    client = cluster.lab.client([request.param])
    yield client
    await client.close()


async def read(client: SlurmClient, name: str) -> Node:
    node = await client.node(name)
    assert node is not None
    return node


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
    assert node.idle
    assert not node.busy
    assert node.features == ("w",)
    assert node.hostname == "n1"
    assert node.address == "10.77.0.1"
    assert node.version.startswith("26.05")
    assert node.slurmd_start_time.value


async def test_an_unchanged_list_is_not_sent_again(client: SlurmClient) -> None:
    answer = await client.nodes()
    async with asyncio.timeout(PATIENCE):
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


async def test_features_comment_and_extra_are_written(client: SlurmClient) -> None:
    update = NodeUpdate(comment='{"a":1}', extra="x=y", features=("w", "k8s/a"), features_act=("w", "k8s/a"))
    await client.update_nodes(["n2"], update)
    node = await read(client, "n2")
    assert (node.comment, node.extra, node.features, node.active_features) == (
        '{"a":1}',
        "x=y",
        ("w", "k8s/a"),
        ("w", "k8s/a"),
    )


async def test_resuming_a_node_that_is_fine_succeeds(client: SlurmClient) -> None:
    await client.update_nodes(["n1", "n2"], NodeUpdate.resume())


async def test_one_unknown_node_does_not_hold_up_the_others(client: SlurmClient) -> None:
    with pytest.raises(NotFound):
        await client.update_nodes(["absent", "n1", "zzz"], NodeUpdate(comment="still done"))
    assert (await read(client, "n1")).comment == "still done"


async def test_an_unknown_node_reads_as_none(client: SlurmClient) -> None:
    assert await client.node("absent") is None


async def test_a_wrong_state_is_refused(client: SlurmClient) -> None:
    with pytest.raises(Refused):
        await client.update_nodes(["n1"], NodeUpdate(state=("BOGUS",)))


async def test_a_busy_node_is_draining_and_is_not_deleted(client: SlurmClient, cluster: Cluster) -> None:
    job = cluster.submit()
    running = await client.job(job)
    assert running is not None
    name = running.nodes
    await client.update_nodes([name], NodeUpdate.drain("busy"))
    node = await read(client, name)
    assert node.draining
    assert node.busy
    assert not node.drained
    with pytest.raises(Refused) as refusal:
        await client.delete_nodes([name])
    assert refusal.value.number == 2016
    assert await client.node(name) is not None


async def test_jobs_are_listed_read_and_cancelled(client: SlurmClient, cluster: Cluster) -> None:
    job = cluster.submit()
    states = {row.job_id: row.state for row in await client.jobs_state()}
    assert states[job] == ("RUNNING",)
    found = await client.job(job)
    assert found is not None
    assert (found.name, found.partition, found.job_state) == ("wrap", "all", ("RUNNING",))
    assert found.start_time.value
    assert found.time_limit.infinite
    await client.cancel_job(job)
    await client.cancel_job(job)
    await client.cancel_job(99999)
    assert await client.job(99999) is None


async def test_tasks_of_an_array_are_found_by_their_own_id(client: SlurmClient, cluster: Cluster) -> None:
    cluster.submit("--array=1-2", tasks=2)
    running = [row.job_id for row in await client.jobs_state() if row.state == ("RUNNING",)]
    jobs = [await client.job(number) for number in running]
    assert sorted(job.nodes for job in jobs if job) == ["n1", "n2"]


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


async def test_the_live_configuration_is_known_by_its_checksum(cluster: Cluster) -> None:
    client = cluster.lab.client()
    live = await client.conf()
    assert live is not None
    assert live.checksum == conf.checksum(CONF)
    assert live.path == "/etc/slurm/slurm.conf"
    assert live.values["MaxNodeCount"] == 1024
    await client.close()
    older = cluster.lab.client(["v0.0.44"])
    assert await older.conf() is None
    await older.close()


async def test_a_good_configuration_is_taken_over_and_a_bad_one_refused(client: SlurmClient, cluster: Cluster) -> None:
    current = cluster.lab.client()
    good = CONF + "MaxJobCount=4321\n# ä\n"
    cluster.lab.write("slurm.conf", good)
    await client.reconfigure()
    await live_is(current, good)

    cluster.lab.write("slurm.conf", CONF + "Bogus=1\n")
    with pytest.raises(Refused):
        await client.reconfigure()
    await live_is(current, good)

    cluster.lab.write("slurm.conf", CONF)
    await client.reconfigure()
    await live_is(current, CONF)
    await current.close()
    idle(cluster.controller, "n1", "n2")


async def live_is(client: SlurmClient, text: str) -> None:
    """Waits until slurmctld goes by this configuration."""
    async with asyncio.timeout(PATIENCE):
        while (live := await client.conf()) is None or live.checksum != conf.checksum(text):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


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
