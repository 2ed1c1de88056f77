"""The conformance manifests on a real kube-apiserver: accepted and read back, or refused with the right message."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeslurm.api.crds import crds, to_yaml
from kubeslurm.api.kinds import LOGINSET, NODESET, SLURM_KINDS, Kind, kind_of
from kubeslurm.api.meta import Tree, tree
from kubeslurm.api.slinky.nodeset import NodeSetStatus
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError, Invalid
from kubeslurm.kube.objects import key_of_tree
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.local.cluster.cluster import Cluster
from tests.conformance.manifests import Case, cases, contains
from tests.support.waiting import WITHIN

NAMESPACE = "conformance"


def each_case(folder: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases(folder), ids=lambda case: case.name)


@pytest.fixture(scope="module")
def place(definitions: Cluster) -> Iterator[None]:
    """A namespace for all tests here, deleted at the end so that the operators of other tests find nothing in it."""
    definitions.kubectl("create", "namespace", NAMESPACE)
    yield
    definitions.kubectl("delete", "namespace", NAMESPACE, "--timeout=180s")


@pytest.fixture
async def kube(place: None, connection: Connection) -> Kube:
    return Kube(connection, Caches(connection), manager="conformance")


async def create(kube: Kube, manifest: Tree) -> None:
    """Create an object, after deleting what an earlier test left."""
    await kube.delete(kind_of(manifest), key_of_tree(manifest))
    await kube.create(manifest)


async def stored(kube: Kube, manifest: Tree) -> Tree:
    """The whole object as the server has stored it."""
    found = await kube.get_tree(kind_of(manifest), key_of_tree(manifest))
    assert found is not None
    return found


async def until_refused(kube: Kube, manifest: Tree, *, refused: bool = True) -> None:
    """Wait until the server uses the definitions that were just applied."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                await kube.apply(manifest, dry_run=True)
            except Invalid:
                if refused:
                    return
            except ApiError:  # between the two it may not serve the kind at all
                pass
            else:
                if not refused:
                    return
            await asyncio.sleep(0.1)


@each_case("valid")
async def test_accepted(kube: Kube, case: Case) -> None:
    (manifest,) = case.objects(NAMESPACE)
    await create(kube, manifest)
    found = await stored(kube, manifest)
    assert contains(found["spec"], manifest["spec"]), "the server dropped or changed something"
    wanted, seen = (msgspec.convert(each, kind_of(manifest).type) for each in (manifest, found))
    assert seen.spec == wanted.spec, "the server's defaults differ from those of the types"


@each_case("invalid")
async def test_refused(kube: Kube, case: Case) -> None:
    (manifest,) = case.objects(NAMESPACE)
    with pytest.raises(Invalid) as refusal:
        await create(kube, manifest)
    assert case.refusal in refusal.value.message


@each_case("update")
async def test_change(kube: Kube, case: Case) -> None:
    before, after = case.objects(NAMESPACE)
    await create(kube, before)
    key = key_of_tree(before)
    change = [{"op": "replace", "path": "/spec", "value": after["spec"]}]
    if not case.refusal:
        await kube.patch(kind_of(before), key, change, type="json")
        assert contains((await stored(kube, before))["spec"], after["spec"])
        return
    with pytest.raises(Invalid) as refusal:
        await kube.patch(kind_of(before), key, change, type="json")
    assert case.refusal in refusal.value.message


def test_the_category_slurm_has_all_kinds(definitions: Cluster) -> None:
    shown = definitions.kubectl("api-resources", "--categories=slurm", "--output=name").split()
    assert shown == sorted(f"{kind.plural}.{kind.group}" for kind in SLURM_KINDS)


@pytest.mark.parametrize("kind", SLURM_KINDS, ids=str)
def test_explain_describes_every_field(definitions: Cluster, kind: Kind[Any]) -> None:
    for part in ("spec", "status"):
        text = definitions.kubectl("explain", f"{kind.plural}.{part}", f"--api-version={kind.api_version}")
        assert "<no description>" not in text
        assert "<empty>" not in text


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (NODESET, {"controllerRef": {"name": "slurm"}}),
        (LOGINSET, {"controllerRef": {"name": "slurm"}, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}}),
    ],
    ids=str,
)
async def test_scale_subresource(kube: Kube, kind: Kind[Any], spec: Tree) -> None:
    manifest = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "scaled", "namespace": NAMESPACE},
        "spec": spec,
    }
    await create(kube, manifest)
    key = Key(NAMESPACE, "scaled")
    await kube.patch(kind, key, {"spec": {"replicas": 7}}, subresource="scale")
    stored = await kube.get_tree(kind, key)
    assert stored is not None
    assert stored["spec"]["replicas"] == 7


async def test_a_status_is_stored_completely_and_shown_in_columns(kube: Kube, definitions: Cluster) -> None:
    spec = {"controllerRef": {"name": "slurm"}}
    head = {"apiVersion": NODESET.api_version, "kind": "NodeSet"}
    await create(kube, head | {"metadata": {"name": "reported", "namespace": NAMESPACE}, "spec": spec})
    since = "2026-01-02T03:04:05Z"
    ready = {"type": "Ready", "status": "False", "reason": "Draining", "message": "m", "lastTransitionTime": since}
    status = tree(NodeSetStatus(desired=3, readyReplicas=2, nodeSetHash="h", selector="a=b")) | {"conditions": [ready]}
    stored = await kube.apply(
        head | {"metadata": {"name": "reported", "namespace": NAMESPACE}, "status": status}, status=True
    )
    assert stored["status"] == status
    row = definitions.kubectl("get", "nodeset", "reported", "-n", NAMESPACE, "--no-headers").split()
    assert row[:6] == ["reported", "3", "0", "0", "2", "Draining"]


async def test_objects_stored_under_laxer_definitions_can_still_be_changed(
    kube: Kube, definitions: Cluster, tmp_path: Path
) -> None:
    manifest = {
        "apiVersion": NODESET.api_version,
        "kind": "NodeSet",
        "metadata": {"name": "lax", "namespace": NAMESPACE},
        "spec": {
            "controllerRef": {"name": ""},
            "extraConf": "no equals",
            "minReadySeconds": -1,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "half"}},
        },
    }
    strict = crds()["nodesets.slinky.slurm.net"]
    try:
        await install(definitions, tmp_path, without_rules(strict))
        await until_refused(kube, manifest, refused=False)
        await create(kube, manifest)
    finally:
        await install(definitions, tmp_path, strict)
    await until_refused(kube, manifest | {"metadata": {"name": "new", "namespace": NAMESPACE}})

    key = Key(NAMESPACE, "lax")
    await kube.patch(NODESET, key, {"spec": {"replicas": 4}})
    with pytest.raises(Invalid, match="extraConf must be"):
        await kube.patch(NODESET, key, {"spec": {"extraConf": "none still"}})
    seen = await kube.get(NODESET, key)
    assert seen is not None
    assert (seen.spec.replicas, seen.spec.extraConf) == (4, "no equals")


async def install(cluster: Cluster, folder: Path, crd: Tree) -> None:
    file = folder / "crd.yaml"
    file.write_text(to_yaml(crd), encoding="utf-8")
    await asyncio.to_thread(cluster.kubectl, "apply", "--server-side", "--force-conflicts", "-f", str(file))


def without_rules(schema: Any) -> Any:
    """The same definition without CEL rules and bounds."""
    if isinstance(schema, dict):
        return {
            name: without_rules(part)
            for name, part in schema.items()
            if name not in ("x-kubernetes-validations", "minimum")
        }
    return [without_rules(part) for part in schema] if isinstance(schema, list) else schema
