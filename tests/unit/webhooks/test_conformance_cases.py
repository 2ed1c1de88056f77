"""The conformance manifests that only admission can refuse."""

import httpx2
import msgspec
import pytest

from kubeslurm.api.kinds import Kind, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.webhooks.app import admission, path_of
from tests.conformance.manifests import Case, cases


class Cluster:
    """Holds some objects."""

    def __init__(self, trees: list[Tree]) -> None:
        self.trees = trees

    async def get(self, kind: Kind[Resource], key: Key) -> Resource | None:
        return next((found for found in await self.list(kind, key.namespace) if found.key == key), None)

    async def list(self, kind: Kind[Resource], namespace: str = "") -> list[Resource]:
        return [msgspec.convert(tree, kind.type) for tree in self.trees if kind_of(tree) is kind]


@pytest.mark.parametrize("case", cases("invalid-webhook"), ids=lambda case: case.name)
async def test_it_is_refused_with_the_words_the_manifest_says(case: Case) -> None:
    *existing, tree = case.objects("conformance")
    request = {"uid": "1", "operation": "CREATE", "namespace": "conformance", "object": tree}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    transport = httpx2.ASGITransport(app=admission(Cluster(existing)))  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
        answer = await client.post(path_of(kind_of(tree)), content=msgspec.json.encode(review))
    response = answer.json()["response"]
    assert response["allowed"] is False
    assert case.refusal in response["status"]["message"]
