"""The conformance manifests that only admission can refuse, and the updates that it must allow."""

import httpx2
import msgspec
import pytest

from kubeslurm.api.kinds import Kind, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.webhooks.app import admission, path_of
from tests.conformance.manifests import Case, cases
from tests.support.fake_apiserver import config_map


class Cluster:
    """A cluster with some objects."""

    def __init__(self, trees: list[Tree]) -> None:
        self.trees = trees

    async def get(self, kind: Kind[Resource], key: Key) -> Resource | None:
        return next((found for found in await self.list(kind, key.namespace) if found.key == key), None)

    async def list(self, kind: Kind[Resource], namespace: str = "") -> list[Resource]:
        found = [msgspec.convert(tree, kind.type) for tree in self.trees if kind_of(tree) is kind]
        return [each for each in found if each.namespace == namespace]


async def response(cluster: Cluster, new: Tree, old: Tree | None = None) -> Tree:
    """The webhook's response to a create or an update."""
    operation = "UPDATE" if old else "CREATE"
    request = {"uid": "1", "operation": operation, "namespace": "conformance", "object": new, "oldObject": old}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    transport = httpx2.ASGITransport(app=admission(cluster))  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
        answer = await client.post(path_of(kind_of(new)), content=msgspec.json.encode(review))
    found: Tree = answer.json()["response"]
    return found


@pytest.mark.parametrize("case", cases("invalid-webhook"), ids=lambda case: case.name)
async def test_an_invalid_manifest_is_refused_with_the_message_it_names(case: Case) -> None:
    *existing, tree = case.objects("conformance")
    found = await response(Cluster(existing), tree)
    assert found["allowed"] is False
    assert case.refusal in found["status"]["message"]


@pytest.mark.parametrize("case", [each for each in cases("update") if not each.refusal], ids=lambda case: case.name)
async def test_a_valid_update_is_allowed(case: Case) -> None:
    before, after = case.objects("conformance")
    references = after["spec"].get("configFileRefs", ())
    files = [config_map(each["name"], {}, namespace="conformance") for each in references]
    assert (await response(Cluster(files), after, before))["allowed"] is True
