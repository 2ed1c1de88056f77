"""The operator as a process, on a real API server."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from kubeslurm.api.kinds import LEASE
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import TERMINATING_PAUSE
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.local.cluster.cluster import Cluster
from tests.support import installation
from tests.support.audit import asked_of, lines, parts_of
from tests.support.operator import DEADLINE, SMALL, Replica, account, running


@asynccontextmanager
async def operator(cluster: Cluster, log: Path, namespace: str) -> AsyncIterator[Replica]:
    flags = [f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}", "--leader-elect"]
    async with running(log, flags) as replica:
        yield replica


async def holder(connection: Connection, namespace: str) -> str:
    lease = await Kube(connection, Caches(connection), manager="test").get(LEASE, Key(namespace, "slurm-operator"))
    return lease.spec.holderIdentity if lease else ""


async def test_it_becomes_ready_serves_metrics_and_ends_at_a_signal(
    definitions: Cluster, connection: Connection, namespace: str, tmp_path: Path
) -> None:
    async with operator(definitions, tmp_path / "log", namespace) as replica:
        await replica.until_ready()
        await replica.until_it_says("controllers start")
        alive = await replica.get(replica.health, "/healthz")
        assert alive is not None
        assert alive.status_code == 200
        scraped = await replica.get(replica.metrics, "/metrics")
        assert scraped is not None
        assert "kubeslurm_queue_depth" in scraped.text
        assert await holder(connection, namespace)
        replica.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            assert await replica.process.wait() == 0
        assert await holder(connection, namespace) == ""


async def test_a_second_replica_waits_and_takes_over(definitions: Cluster, namespace: str, tmp_path: Path) -> None:
    async with operator(definitions, tmp_path / "first", namespace) as first:
        await first.until_it_says("controllers start")
        async with operator(definitions, tmp_path / "second", namespace) as second:
            await second.until_ready()
            await second.until_it_says("waiting for the Lease")
            assert "controllers start" not in second.log.read_text()
            first.process.send_signal(signal.SIGTERM)
            await second.until_it_says("controllers start")


async def test_an_operator_in_another_namespace_does_not_act(
    definitions: Cluster, connection: Connection, namespace: str, tmp_path: Path
) -> None:
    objects = installation.account(installation.OPERATOR, namespace)
    kubeconfig = await asyncio.to_thread(account, definitions, namespace, objects, tmp_path)
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", "--leader-elect"]
    async with running(tmp_path / "first", flags) as first:
        await first.until_it_says("controllers start")
        async with operator(definitions, tmp_path / "second", "default") as second:
            await second.until_it_says("another operator is active")
            assert await holder(connection, "default") == ""
            first.process.send_signal(signal.SIGTERM)
            await second.until_it_says("controllers start")


async def test_a_lease_in_a_namespace_without_an_operators_account_stops_nobody(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    lease = {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": "slurm-operator", "namespace": namespace},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
    }
    await asyncio.to_thread(definitions.kubectl, "apply", "--filename=-", stdin=json.dumps(lease))
    async with operator(definitions, tmp_path / "log", "default") as replica:
        await replica.until_it_says("a Lease is ignored")
        await replica.until_it_says("controllers start")


async def test_it_runs_with_the_rights_and_flags_of_the_go_operator(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    objects = installation.account(installation.OPERATOR, namespace)
    kubeconfig = await asyncio.to_thread(account, definitions, namespace, objects, tmp_path)
    flags = installation.flags(installation.OPERATOR, namespace)
    async with running(tmp_path / "log", flags, KUBECONFIG=str(kubeconfig), POD_NAMESPACE=namespace) as replica:
        await replica.until_ready()
        await replica.until_it_says("controllers start")
        scraped = await replica.get(replica.metrics, "/metrics")
        assert scraped is not None
        assert "kubeslurm_api_requests_total{" in scraped.text
        sent = asked_of(definitions, namespace, installation.OPERATOR)
        assert sent
        assert [each for each in sent if each.forbidden] == []


async def test_in_a_namespace_that_is_being_deleted_few_writes_are_tried(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def kubectl(*args: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(definitions.kubectl, *args, stdin=stdin)

    await kubectl("create", "namespace", "leaving")
    # A finalizer of someone else keeps the namespace terminating for as long as the test needs it.
    await kubectl("create", "configmap", "held", "--namespace=leaving")
    change = ("patch", "configmap", "held", "--namespace=leaving", "--type=merge")
    await kubectl(*change, '--patch={"metadata":{"finalizers":["example.org/hold"]}}')
    # The audit log has the requests of service accounts.
    objects = installation.account(installation.OPERATOR, namespace)
    kubeconfig = await asyncio.to_thread(account, definitions, namespace, objects, tmp_path)
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", "--leader-elect"]
    async with running(tmp_path / "log", flags) as replica, asyncio.timeout(2 * DEADLINE):
        await replica.until_it_says("controllers start")
        await kubectl("apply", "--namespace=leaving", "--filename=-", stdin=SMALL)
        shown = ("get", "nodeset", "cpu", "--namespace=leaving", "--output=yaml")
        while "cleanup" not in await kubectl(*shown):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.2)
        await kubectl("delete", "--wait=false", "namespace", "leaving")
        left = ("get", "slurm", "--namespace=leaving", "--ignore-not-found")
        while await kubectl(*left):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.2)
        await kubectl(*change, '--patch={"metadata":{"finalizers":null}}')
    sent = record(definitions, namespace, place="leaving")
    refusals = [entry for entry in sent if entry["responseStatus"]["code"] == 403]
    refused = [datetime.fromisoformat(entry["requestReceivedTimestamp"]) for entry in refusals]
    pause = timedelta(seconds=TERMINATING_PAUSE - 1)
    most = max((sum(first <= each < first + pause for each in refused) for first in refused), default=0)
    assert most <= 16, "no more than the writes that may run at once; then nothing is sent for a while"


def record(cluster: Cluster, namespace: str, *, place: str) -> list[Tree]:
    """The requests of one namespace's operator to another namespace."""
    user = f"system:serviceaccount:{namespace}:{installation.OPERATOR}"
    entries = [entry for entry in map(json.loads, lines(parts_of(cluster))) if entry["user"]["username"] == user]
    found = [entry for entry in entries if entry.get("objectRef", {}).get("namespace") == place]
    assert found
    return found
