"""Writes to a real API server: skipped when nothing would change, repeated when someone else changed a field."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubeslurm.api.kinds import CONFIGMAP, CRD, DEPLOYMENT, EVENT, NAMESPACE, POD, TOKEN, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.api.views import Deployment
from kubeslurm.engine.key import Key
from kubeslurm.kube import metrics
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists, Conflict, Invalid, NotFound, Terminating
from kubeslurm.kube.events import Events
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.kube.transport.terminating import TerminatingNamespaces
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.follow import Follower, following
from tests.support.waiting import WITHIN


def requests(verb: str, kind: Kind[Any]) -> float:
    """How many requests of one verb and kind were sent so far."""
    samples = (sample for metric in metrics.REQUESTS.collect() for sample in metric.samples)
    return sum(
        each.value
        for each in samples
        if each.name.endswith("_total") and each.labels["verb"] == verb and each.labels["kind"] == kind.kind
    )


def deployment(namespace: str, **container: Any) -> Tree:
    """A Deployment with values that the server normalizes."""
    resources = {"requests": {"cpu": "1000m", "memory": "1024Mi"}}
    main = {"name": "main", "image": "localhost/pause:1", "resources": resources, **container}
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "web", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [main],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "terminationGracePeriodSeconds": 5,
                },
            },
        },
    }


@pytest.fixture
async def follower(cluster: Cluster, namespace: str) -> AsyncIterator[Follower[Deployment]]:
    async with following(DEPLOYMENT, cluster.kubeconfig, namespace) as made:
        yield made


@pytest.fixture
def other(connection: Connection) -> Kube:
    """Another client that changes the same objects."""
    return Kube(connection, Caches(connection), manager="other")


KEY = "web"


async def test_an_unchanged_object_is_applied_once(follower: Follower[Deployment], namespace: str, other: Kube) -> None:
    before = requests("apply", DEPLOYMENT)
    for _ in range(5):
        await follower.kube.apply(deployment(namespace))
        await follower.converge(other)
    assert requests("apply", DEPLOYMENT) == before + 1


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 99}}}},
        {"spec": {"template": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "localhost/other:1"}]}}}},
        {"metadata": {"labels": {"app": None}}},
    ],
    ids=["a value", "an atomic list", "a container", "a removed label"],
)
async def test_an_edit_of_our_fields_is_repaired_with_one_request(
    follower: Follower[Deployment], namespace: str, other: Kube, edit: Tree
) -> None:
    wanted = await follower.kube.apply(deployment(namespace))
    await other.patch(DEPLOYMENT, Key(namespace, KEY), edit, type="strategic")
    await follower.converge(other)
    before = requests("apply", DEPLOYMENT)
    for _ in range(3):
        await follower.kube.apply(deployment(namespace))
        await follower.converge(other)
    assert requests("apply", DEPLOYMENT) == before + 1
    repaired = await other.get_tree(DEPLOYMENT, Key(namespace, KEY))
    assert repaired is not None
    assert repaired["spec"] == wanted["spec"]
    assert repaired["metadata"]["labels"] == wanted["metadata"]["labels"]


async def test_an_edit_of_fields_that_are_not_ours_is_kept(
    follower: Follower[Deployment], namespace: str, other: Kube
) -> None:
    await follower.kube.apply(deployment(namespace))
    edit = {"metadata": {"annotations": {"note": "theirs"}}, "spec": {"minReadySeconds": 7}}
    await other.patch(DEPLOYMENT, Key(namespace, KEY), edit)
    await follower.converge(other)
    before = requests("apply", DEPLOYMENT)
    await follower.kube.apply(deployment(namespace))
    assert requests("apply", DEPLOYMENT) == before
    live = await other.get_tree(DEPLOYMENT, Key(namespace, KEY))
    assert live is not None
    assert live["spec"]["minReadySeconds"] == 7


async def test_a_field_that_is_no_longer_applied_is_removed(
    follower: Follower[Deployment], namespace: str, other: Kube
) -> None:
    await follower.kube.apply(deployment(namespace, args=["--old"]))
    answer = await follower.kube.apply(deployment(namespace))
    assert "args" not in answer["spec"]["template"]["spec"]["containers"][0]


async def test_fields_of_the_go_operator_are_taken_over_without_a_change_and_can_then_be_removed(
    follower: Follower[Deployment], namespace: str, connection: Connection
) -> None:
    former = Kube(connection, Caches(connection), manager="manager")
    written = await former.create(deployment(namespace, args=["--old"], command=["/old"]))
    await follower.converge(former)
    taken = await applied(follower.kube, deployment(namespace, args=["--old"], command=["/old"]))
    assert taken["metadata"]["generation"] == written.metadata.generation, "no pod restarts"
    managers = {(each["manager"], each["operation"]) for each in taken["metadata"]["managedFields"]}
    assert managers & {("manager", "Update"), ("kubeslurm-test", "Apply")} == {("kubeslurm-test", "Apply")}
    freed = await follower.kube.apply(deployment(namespace))
    container = freed["spec"]["template"]["spec"]["containers"][0]
    assert "args" not in container
    assert "command" not in container


async def applied(kube: Kube, wanted: Tree) -> Tree:
    """Applies, and tries again after a conflict: the server's own controllers write to a new Deployment too."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                return await kube.apply(wanted)
            except Conflict:
                await asyncio.sleep(0.1)


@pytest.fixture
def tokens(definitions: Cluster) -> Kind[Any]:
    """The Token kind, served by the cluster."""
    return TOKEN


async def test_an_unchanged_status_is_applied_once_and_an_edited_one_is_repaired(
    cluster: Cluster, namespace: str, other: Kube, tokens: Kind[Any]
) -> None:
    name = {"namespace": namespace, "name": "token"}
    base = {"apiVersion": tokens.api_version, "kind": tokens.kind, "metadata": name}
    ref = {"name": "key", "key": "jwt.key"}
    await other.create(base | {"spec": {"username": "root", "jwtHs256KeyRef": ref | {"namespace": namespace}}})
    condition = {"type": "Ready", "status": "True", "reason": "Issued", "message": "issued"}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    wanted = base | {"status": {"conditions": [condition]}}
    async with following(tokens, cluster.kubeconfig, namespace) as follower:
        before = requests("apply", tokens)
        for _ in range(3):
            await follower.kube.apply(wanted, status=True)
            await follower.converge(other)
        assert requests("apply", tokens) == before + 1
        edit = {"status": {"conditions": [condition | {"message": "edited"}]}}
        await other.patch(tokens, Key(namespace, "token"), edit, subresource="status")
        await follower.converge(other)
        answer = await follower.kube.apply(wanted, status=True)
        assert answer["status"]["conditions"][0]["message"] == "issued"
        assert requests("apply", tokens) == before + 2


async def test_a_dry_run_returns_the_result_and_changes_nothing(
    follower: Follower[Deployment], namespace: str, other: Kube
) -> None:
    answer = await follower.kube.apply(deployment(namespace), dry_run=True)
    assert answer["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert await other.get(DEPLOYMENT, Key(namespace, KEY)) is None
    with pytest.raises(Invalid, match="image"):
        await follower.kube.apply(deployment(namespace, image=""), dry_run=True)


async def test_a_finalizer_holds_an_object_until_it_is_released(cluster: Cluster, namespace: str, other: Kube) -> None:
    key = Key(namespace, "held")
    async with following(CONFIGMAP, cluster.kubeconfig, namespace) as follower:
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "held"}}
        await follower.kube.apply(tree)
        outdated = follower.store[key]
        held = await follower.kube.add_finalizer(CONFIGMAP, outdated, "kubeslurm.dev/test")
        with pytest.raises(Conflict):
            await follower.kube.add_finalizer(CONFIGMAP, outdated, "kubeslurm.dev/other")
        await follower.kube.delete(CONFIGMAP, key, uid=held.metadata.uid)
        assert follower.store[key].deleting
        await follower.kube.remove_finalizer(CONFIGMAP, follower.store[key], "kubeslurm.dev/test")
        assert key not in follower.store
        await follower.converge(other)
        assert await other.get(CONFIGMAP, key) is None


async def test_pods_are_created_once_and_deleted_by_uid(cluster: Cluster, namespace: str, other: Kube) -> None:
    spec = {"containers": [{"name": "main", "image": "localhost/pause:1"}], "terminationGracePeriodSeconds": 60}
    spec |= {"serviceAccountName": "default", "automountServiceAccountToken": False, "nodeName": "nowhere"}
    account = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": "p"}, "spec": spec}
    key = Key(namespace, "p")
    cluster.kubectl("-n", namespace, "wait", "--for=create", "serviceaccount/default", "--timeout=180s")
    async with following(POD, cluster.kubeconfig, namespace) as follower:
        made = await follower.kube.create(account)
        with pytest.raises(AlreadyExists):
            await follower.kube.create(account)
        with pytest.raises(Conflict):
            await follower.kube.delete(POD, key, uid="00000000-0000-0000-0000-000000000000")
        await follower.kube.patch(POD, key, {"metadata": {"annotations": {"a": "b"}}})
        assert follower.store[key].metadata.annotations["a"] == "b"
        await follower.kube.delete(POD, key, uid=made.metadata.uid)
        assert follower.store[key].deleting, "a pod on a node is removed when its kubelet has ended it"
        await follower.kube.delete(POD, key, uid=made.metadata.uid, grace=0)
        assert key not in follower.store
        await follower.converge(other)
        with pytest.raises(NotFound):
            await follower.kube.patch(POD, key, {"metadata": {"labels": {"late": "yes"}}})


async def test_events_are_accepted_and_counted(
    cluster: Cluster, namespace: str, connection: Connection, follower: Follower[Deployment]
) -> None:
    await follower.kube.apply(deployment(namespace))
    obj = follower.store[Key(namespace, KEY)]
    events = Events(connection)
    for _ in range(7):
        events.warning(obj, "Stuck", "the scheduler finds no node: add one")
    await events.flush()
    await events.flush_series()
    reader = Kube(connection, Caches(connection), manager="reader")
    (event,) = [each for each in await reader.list(EVENT, namespace) if each.metadata.name.startswith(KEY)]
    tree = await reader.get_tree(EVENT, Key(namespace, event.metadata.name))
    assert tree is not None
    assert tree["series"]["count"] == 7
    assert "Stuck" in cluster.kubectl("-n", namespace, "describe", "deployment", KEY)


async def test_the_error_has_the_reason_of_the_server(other: Kube, namespace: str) -> None:
    with pytest.raises(Invalid, match="selector"):
        await other.create({**deployment(namespace), "spec": {"template": {}}})


async def test_a_kind_that_is_not_served_is_not_found(other: Kube, namespace: str) -> None:
    assert await other.get(CRD, Key("", "no-such.example.org")) is None
    with pytest.raises(NotFound):
        await other.apply(
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "ServiceMonitor",
                "metadata": {"namespace": namespace, "name": "x"},
            }
        )


async def test_in_a_namespace_that_is_being_deleted_only_one_write_is_sent(
    connection: Connection, other: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "going-away"
    stopped = TerminatingNamespaces(lambda: 0.0)  # time stands still, however slow the machine is
    monkeypatch.setattr(connection, "_terminating", stopped)
    await other.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    held = {"name": "held", "namespace": name, "finalizers": ["example.org/hold"]}
    await other.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    await other.delete(NAMESPACE, Key("", name))
    before = requests("create", CONFIGMAP) + requests("apply", CONFIGMAP)
    for number in range(20):
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"new-{number}", "namespace": name}}
        with pytest.raises(Terminating):
            await (other.create(tree) if number % 2 else other.apply(tree))
    assert requests("create", CONFIGMAP) + requests("apply", CONFIGMAP) == before + 1

    await other.patch(CONFIGMAP, Key(name, "held"), {"metadata": {"finalizers": None}})
    async with asyncio.timeout(WITHIN):
        while await other.get(NAMESPACE, Key("", name)) is not None:  # noqa: ASYNC110 (deleted by the server)
            await asyncio.sleep(0.1)


async def test_the_status_of_an_object_that_is_gone_is_a_conflict(other: Kube, namespace: str) -> None:
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "gone"}}
    with pytest.raises(Conflict, match="gone is gone"):
        await other.apply(tree | {"status": {"replicas": 0}}, status=True)
