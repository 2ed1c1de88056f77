"""What the real garbage collection does to workers and slurmctld when their owners are deleted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, NODESET, POD, STATEFULSET, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import for_ordinal
from kubeslurm.build.common import second_owner
from kubeslurm.build.controller.statefulset import statefulset
from kubeslurm.build.worker import pod as worker
from kubeslurm.build.worker import revision
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.reconcile.nodeset.owners import Owners
from tests.support.waiting import wait_for


class Site:
    """A Controller and a NodeSet with one worker, as the operator holds them; no operator is at work."""

    def __init__(self, cluster: Cluster, kube: Kube, namespace: str) -> None:
        self.cluster = cluster
        self.kube = kube
        self.namespace = namespace

    async def make(self, *, second: bool) -> None:
        self.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=180s")
        controller = await self.create(CONTROLLER, "main", SLURMCTLD)
        spec = {"controllerRef": {"name": "main"}, "slurmd": {"image": "slurmd:1"}}
        nodeset = await self.create(NODESET, "gpu", spec)
        assert isinstance(controller, Controller)
        assert isinstance(nodeset, NodeSet)
        extra = [await self.second_owner(controller)] if second else []
        template = worker.pod(controller, nodeset, for_ordinal(nodeset, 0), "hash", {}, names.DOMAIN)
        # Its kubelet is away: a pod that is deleted stays, and shows that it was.
        pod = template | {"spec": template["spec"] | {"nodeName": "nowhere", "serviceAccountName": "default"}}
        for tree in (pod, statefulset(controller, {})):
            owners = [*tree["metadata"]["ownerReferences"], *extra]
            await self.kube.create(tree | {"metadata": tree["metadata"] | {"ownerReferences": owners}})
        history = revision.choose(nodeset, (), ()).create
        assert history is not None
        await self.kube.create(history)
        change = {"status": {"nodeSetHash": history["metadata"]["name"].rpartition("-")[2], "selector": "a=b"}}
        await self.kube.patch(NODESET, self.key("gpu"), change, subresource="status")

    async def create(self, kind: Kind[Any], name: str, spec: Tree) -> Any:
        metadata = {"namespace": self.namespace, "name": name, "finalizers": [names.FINALIZER]}
        tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        return await self.kube.create(tree)

    async def second_owner(self, controller: Controller) -> Tree:
        await self.kube.create(second_owner.configmap(controller))
        found = await self.kube.get(CONFIGMAP, self.key(names.second_owner("main")))
        assert found is not None
        return second_owner.reference(found)

    def delete(self, cascade: str, *objects: str) -> None:
        """Asks for the deletion."""
        self.kubectl("delete", *objects, f"--cascade={cascade}", "--wait=false")

    def wait_for_garbage_collection(self, *objects: str) -> None:
        """Until it has done its part, and only our own finalizer is left."""
        path, ours = "--output=jsonpath={.metadata.finalizers}", f'["{names.FINALIZER}"]'
        wait_for("garbage collection", lambda: all(self.kubectl("get", each, path) == ours for each in objects))

    async def is_kept(self, kind: Kind[Any], name: str) -> bool:
        found = await self.kube.get(kind, self.key(name))
        return found is not None and not found.metadata.deleting

    async def release(self) -> None:
        held: tuple[tuple[Kind[Any], str], ...] = ((NODESET, "gpu"), (CONTROLLER, "main"))
        for kind, name in held:
            found = await self.kube.get(kind, self.key(name))
            assert found is not None
            await self.kube.remove_finalizer(kind, found, names.FINALIZER)

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    def kubectl(self, *args: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *args)


SLURMCTLD = {
    "slurmKeyRef": {"name": "k", "key": "slurm.key"},
    "jwtKeyRef": {"name": "k", "key": "jwt.key"},
    "slurmctld": {"image": "slurmctld:1"},
}
NODESET_NAME, CONTROLLER_NAME = "nodesets.slinky.slurm.net/gpu", "controllers.slinky.slurm.net/main"


@pytest.fixture
async def site(definitions: Cluster, connection: Connection, namespace: str) -> AsyncIterator[Site]:
    made = Site(definitions, Kube(connection, Caches(connection), manager="kubeslurm-test"), namespace)
    yield made
    made.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    for each in (NODESET_NAME, CONTROLLER_NAME):
        made.cluster.kubectl(
            "-n", namespace, "patch", each, "--type=merge", '--patch={"metadata":{"finalizers":null}}', check=False
        )  # fmt: skip


async def test_a_worker_without_a_second_owner_is_deleted_with_the_owners_it_has(site: Site) -> None:
    """Why there is a second owner."""
    await site.make(second=False)
    site.delete("foreground", NODESET_NAME, CONTROLLER_NAME)
    path = "--output=jsonpath={.metadata.deletionTimestamp}"
    wait_for("the worker to be deleted", lambda: site.kubectl("get", "pod/gpu-0", path))
    wait_for("slurmctld to go", lambda: not site.kubectl("get", "statefulsets", "--output=name"))


async def test_workers_and_slurmctld_outlive_a_foreground_deletion_of_all_objects(site: Site) -> None:
    await site.make(second=True)
    site.delete("foreground", NODESET_NAME, CONTROLLER_NAME)
    site.wait_for_garbage_collection(NODESET_NAME, CONTROLLER_NAME)
    assert await site.is_kept(POD, "gpu-0")
    assert await site.is_kept(STATEFULSET, "main-controller")
    # What the operator does when the worker is drained.
    await site.release()
    await site.kube.delete(CONFIGMAP, site.key(names.second_owner("main")))
    wait_for("slurmctld to go", lambda: not site.kubectl("get", "statefulsets", "--output=name"))


@pytest.mark.parametrize(("cascade", "kept"), [("orphan", True), ("foreground", False), ("background", False)])
async def test_it_is_known_afterwards_whether_the_pods_were_to_be_kept(site: Site, cascade: str, kept: bool) -> None:
    await site.make(second=True)
    site.delete(cascade, NODESET_NAME)
    site.wait_for_garbage_collection(NODESET_NAME)
    assert await site.is_kept(POD, "gpu-0")
    nodeset = await site.kube.get(NODESET, site.key("gpu"))
    assert nodeset is not None
    assert await Owners(site.kube, site.kube.caches).are_kept(nodeset) is kept
