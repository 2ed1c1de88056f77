"""The admission server: AdmissionReviews over HTTP."""

from typing import Any

import httpx2
import msgspec
import pytest

from kubeslurm.api.kinds import CONFIGMAP, SLURM_KINDS, Kind
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Unavailable
from kubeslurm.webhooks.app import BINDING_PATH, admission, path_of

KEY = {"name": "slurm-auth", "key": "slurm.key"}
PATH = "/validate-slinky-slurm-net-v1beta1-controller"


class Cluster:
    """A cluster with the given ConfigMaps in the namespace slurm, or one that does not answer."""

    def __init__(self, *, reachable: bool = True, **files: list[str]) -> None:
        self.reachable = reachable
        self.files = files

    async def get(self, kind: Kind[Any], key: Key) -> Any:
        if not self.reachable:
            raise Unavailable(0, "Timeout", "no answer")
        if kind is not CONFIGMAP or key.namespace != "slurm" or key.name not in self.files:
            return None
        tree = {"metadata": {"name": key.name}, "data": dict.fromkeys(self.files[key.name], "")}
        return msgspec.convert(tree, kind.type)

    async def list(self, kind: Kind[Any], namespace: str = "") -> list[Any]:
        return []


def controller(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "slurm", "namespace": "slurm"},
        "spec": {"slurmKeyRef": KEY, "jwtKeyRef": KEY, **spec},
    }


def review(new: Any, old: Any = None, *, version: str = "v1", operation: str = "CREATE") -> dict[str, Any]:
    request = {
        "uid": "u-1",
        "operation": operation,
        "namespace": "slurm",
        "name": "slurm",
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": request}


async def post(cluster: Cluster, body: Any, path: str = PATH) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=admission(cluster))
    async with httpx2.AsyncClient(transport=transport, base_url="https://webhook") as client:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await client.post(path, content=content)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_the_answer_has_the_api_version_of_the_request(version: str) -> None:
    answer = (await post(Cluster(), review(controller(), version=version))).json()
    assert answer == {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


async def test_a_refusal_carries_the_reason_and_the_remedy() -> None:
    new = controller(configFileRefs=[{"name": "files"}])
    response = (await post(Cluster(), review(new))).json()["response"]
    assert response["allowed"] is False
    assert response["status"]["reason"] == "Invalid"
    assert "create it first" in response["status"]["message"]


async def test_an_accepted_object_can_come_with_warnings() -> None:
    new = controller(configFileRefs=[{"name": "files"}])
    response = (await post(Cluster(files=["notes.txt"]), review(new))).json()["response"]
    assert response["allowed"] is True
    assert "notes.txt" in response["warnings"][0]


async def test_an_update_is_compared_with_the_old_object() -> None:
    body = review(controller(clusterName="b"), controller(clusterName="a"), operation="UPDATE")
    assert (await post(Cluster(), body)).json()["response"]["allowed"] is False


async def test_a_deletion_is_always_allowed() -> None:
    body = review(None, controller(clusterName="a"), operation="DELETE")
    assert (await post(Cluster(), body)).json()["response"]["allowed"] is True


async def test_when_the_cluster_does_not_answer_the_object_is_allowed_with_a_warning() -> None:
    new = controller(configFileRefs=[{"name": "files"}])
    response = (await post(Cluster(reachable=False), review(new))).json()["response"]
    assert response["allowed"] is True
    assert "could not be checked" in response["warnings"][0]


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1]", msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "request": {"uid": "x"}})]
)
async def test_a_body_that_is_no_admission_review_is_refused(body: bytes) -> None:
    assert (await post(Cluster(), body)).status_code == 400


async def test_every_kind_has_a_path_of_its_own() -> None:
    assert {path_of(kind) for kind in SLURM_KINDS} == {
        f"/validate-slinky-slurm-net-v1beta1-{kind}"
        for kind in ("accounting", "controller", "loginset", "nodeset", "restapi", "token")
    }


async def test_bindings_are_always_allowed() -> None:
    answer = await post(Cluster(), review({"kind": "Binding"}), BINDING_PATH)
    assert answer.json()["response"] == {"uid": "u-1", "allowed": True}
