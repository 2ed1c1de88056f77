"""A watch on a real API server, with everything that breaks watches."""

import asyncio
import base64
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube import metrics, reflector
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.follow import following
from tests.support.proxy import Proxy
from tests.support.waiting import WITHIN, eventually, wait_for

READY = ("get", "--raw=/readyz", "--request-timeout=10s")


def config_map(namespace: str, name: str, **data: str) -> Tree:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Writer:
    """Another client of the same server, on a connection of its own."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.kube = Kube(connection, Caches(connection), manager="writer")
        self.namespace = namespace

    async def write(self, name: str, **data: str) -> None:
        await self.kube.apply(config_map(self.namespace, name, **data))

    async def delete(self, name: str) -> None:
        await self.kube.delete(CONFIGMAP, Key(self.namespace, name))

    async def churn(self, round_: str) -> None:
        """Create, change and delete objects, and create a deleted one again."""
        await self.write(f"new-{round_}", round=round_)
        await self.write("changed", round=round_)
        await self.write("gone", round=round_)
        await self.delete("gone")
        await self.delete("back")
        await self.write("back", round=round_)


@pytest.fixture
async def writer(connection: Connection, namespace: str) -> Writer:
    made = Writer(connection, namespace)
    for name in ("changed", "gone", "back"):
        await made.write(name, round="0")
    return made


def kill_component(cluster: Cluster, name: str) -> None:
    """Kill a component of the control plane and wait for its end; the cluster's supervisor starts it again."""
    process = wait_for(f"a process of {name}", lambda: cluster.host_pid(name))
    os.kill(process, signal.SIGKILL)
    wait_for(f"the end of {name}", lambda: cluster.host_pid(name) not in (process, 0))


ETCD_CALL = """
import ssl, sys, urllib.request
pki, url, body = sys.argv[1:]
context = ssl.create_default_context(cafile=f"{pki}/etcd-ca.crt")
context.load_cert_chain(f"{pki}/apiserver-etcd.crt", f"{pki}/apiserver-etcd.key")
print(urllib.request.urlopen(url, body.encode(), context=context).read().decode())
"""


def etcd(cluster: Cluster, call: str, body: Tree) -> Tree:
    """One request to etcd's JSON gateway, with the API server's certificate."""
    url = f"https://127.0.0.1:2379/v3/kv/{call}"
    text = msgspec.json.encode(body).decode()
    done = cluster.exec_in_network([sys.executable, "-c", ETCD_CALL, str(cluster.home.pki), url, text])
    assert done.returncode == 0, done.stdout + done.stderr
    answer: Tree = msgspec.json.decode(done.stdout)
    return answer


def compact(cluster: Cluster) -> int:
    """Compact the whole history of etcd."""
    revision = int(etcd(cluster, "range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"])
    etcd(cluster, "compaction", {"revision": revision, "physical": True})
    return revision


async def until_served(cluster: Cluster, kube: Kube) -> None:
    """Wait until the API server answers again, and has read roles and definitions."""
    await asyncio.to_thread(wait_for, "the API server", lambda: cluster.kubectl(*READY, check=False).strip() == "ok")
    await kube.list(CONFIGMAP, "default")  # connections to the former process may still be open


def restarts(cause: str = "") -> float:
    """How often watches were restarted, for one cause or for all."""
    samples = (sample for metric in metrics.WATCH_RESTARTS.collect() for sample in metric.samples)
    return sum(each.value for each in samples if each.name.endswith("_total") and cause in each.labels["cause"])


async def test_changes_arrive_and_our_own_writes_are_in_the_store_at_once(cluster: Cluster, writer: Writer) -> None:
    async with following(CONFIGMAP, cluster.kubeconfig, writer.namespace) as follower:
        await writer.churn("1")
        await follower.converge(writer.kube)
        await follower.kube.apply(config_map(writer.namespace, "ours", a="1"))
        assert follower.store[Key(writer.namespace, "ours")].data == {"a": "1"}
        await follower.kube.delete(CONFIGMAP, Key(writer.namespace, "ours"))
        assert Key(writer.namespace, "ours") not in follower.store
        await follower.converge(writer.kube)


async def test_a_connection_that_breaks_in_the_middle_of_the_stream_loses_nothing(proxy: Proxy, writer: Writer) -> None:
    async with following(CONFIGMAP, proxy.kubeconfig, writer.namespace) as follower:
        for round_ in range(3):
            changes = asyncio.create_task(writer.churn(str(round_)))
            await asyncio.sleep(0)
            proxy.cut()
            await changes
            await follower.converge(writer.kube)


async def test_after_a_restart_of_the_api_server_the_watch_goes_on(cluster: Cluster, writer: Writer) -> None:
    async with following(CONFIGMAP, cluster.kubeconfig, writer.namespace) as follower:
        kill_component(cluster, "kube-apiserver")
        await until_served(cluster, writer.kube)
        await writer.churn("1")
        await follower.converge(writer.kube)


async def test_after_a_compaction_a_new_list_replaces_the_lost_history(
    cluster: Cluster, proxy: Proxy, writer: Writer
) -> None:
    """While the watch is broken everything changes, etcd is compacted and the API server restarts: a real 410."""
    async with following(CONFIGMAP, proxy.kubeconfig, writer.namespace) as follower:
        deleted: list[Key] = []
        follower.store.subscribe(lambda key, _old, new: deleted.append(key) if new is None else None)
        expired = restarts("expired")
        await proxy.close()
        await writer.churn("1")
        await writer.delete("changed")
        kill_component(cluster, "kube-apiserver")
        await until_served(cluster, writer.kube)
        compact(cluster)
        await proxy.reopen()
        await follower.converge(writer.kube)
        assert Key(writer.namespace, "changed") in deleted, "a deletion in the gap reaches the listeners"
        assert restarts("expired") > expired, "the server answered 410"


async def test_a_server_without_watch_list_is_listed_in_pages(
    cluster: Cluster, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list path on a real server: pages of one object, and a page token that compaction makes invalid."""
    monkeypatch.setattr(reflector, "PAGE", 1)
    connection = Connection(connect(cluster.kubeconfig))
    caches = Caches(connection, namespaces=[writer.namespace])
    store = caches.add(CONFIGMAP)
    ((_, source),) = caches.reflectors
    monkeypatch.setattr(source, "_watch_list", False)
    task = asyncio.create_task(source.run())
    async with asyncio.timeout(WITHIN):
        await store.wait_synced()
        await writer.churn("1")
        await eventually("the watch after the list", lambda: Key(writer.namespace, "new-1") in store)
        # Listed again each time: the server's own controllers write here too.
        while {each.metadata.name for each in await writer.kube.list(CONFIGMAP, writer.namespace)} != {  # noqa: ASYNC110
            each.metadata.name for each in store
        }:
            await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await connection.close()


async def test_a_silent_connection_is_replaced(proxy: Proxy, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SILENCE", (2.0, 3.0))
    async with following(CONFIGMAP, proxy.kubeconfig, writer.namespace) as follower:
        opened = proxy.connections
        proxy.freeze()
        await writer.churn("1")
        await eventually("a new connection", lambda: proxy.connections > opened)
        monkeypatch.undo()
        proxy.thaw()
        await follower.converge(writer.kube)


async def test_a_watch_that_is_too_slow_for_the_server_catches_up(proxy: Proxy, writer: Writer) -> None:
    """The proxy stops reading while megabytes of events pile up, until the server drops the watch."""
    ballast = "x" * 200_000
    async with following(CONFIGMAP, proxy.kubeconfig, writer.namespace) as follower:
        before = restarts()
        proxy.freeze()
        for round_ in range(150):
            await writer.write("changed", round=str(round_), ballast=ballast)
        await writer.churn("last")
        proxy.thaw()
        await follower.converge(writer.kube)
        assert restarts() > before, "the server dropped the watch"


async def test_a_token_that_was_renewed_on_disk_is_read_again(cluster: Cluster, writer: Writer, tmp_path: Path) -> None:
    """As with a service account: the kubelet replaces the file, the old token stops working."""
    token = tmp_path / "token"
    token.write_text("expired")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    connection = Connection(connect(kubeconfig))
    reader = Kube(connection, Caches(connection), manager="reader")
    with pytest.raises(ApiError, match="Unauthorized"):
        await reader.list(CONFIGMAP, writer.namespace)
    cluster.kubectl("-n", writer.namespace, "create", "serviceaccount", "reader")
    cluster.kubectl(
        "create", "clusterrolebinding", "reader", "--clusterrole=view", f"--serviceaccount={writer.namespace}:reader"
    )
    token.write_text(cluster.kubectl("-n", writer.namespace, "create", "token", "reader"))
    caches = Caches(connection, namespaces=[writer.namespace])
    store = caches.add(CONFIGMAP)
    ((_, source),) = caches.reflectors
    task = asyncio.create_task(source.run())
    async with asyncio.timeout(WITHIN):
        await store.wait_synced()
    assert Key(writer.namespace, "changed") in store
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await connection.close()
    cluster.kubectl("delete", "clusterrolebinding", "reader")
