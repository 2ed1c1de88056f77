"""The six kinds as the operator reads them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kubeslurm.api.kinds import kind_of
from kubeslurm.api.meta import Condition, Tree, tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet, NodeSetStatus
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.slinky.token import Token
from tests.conformance.manifests import Case, cases

KEYS: Tree = {"slurmKeyRef": {"name": "s", "key": "k"}, "jwtKeyRef": {"name": "j", "key": "k"}}


def read(kind: type[Any], spec: Tree, **metadata: Any) -> Any:
    body = {"metadata": {"name": "gpu", "namespace": "slurm", "uid": "u"} | metadata, "spec": spec}
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def nodeset(**spec: Any) -> NodeSet:
    found: NodeSet = read(NodeSet, {"controllerRef": {"name": "slurm"}} | spec)
    return found


@pytest.mark.parametrize("case", cases("valid"), ids=lambda case: case.name)
def test_every_valid_manifest_is_read(case: Case) -> None:
    (manifest,) = case.objects("slurm")
    obj = msgspec.convert(manifest, kind_of(manifest).type)
    assert obj.key == ("slurm", manifest["metadata"]["name"])


def test_user_templates_stay_as_written() -> None:
    template = {"spec": {"hostname": "gpu-", "notInventedYet": {"deep": [1, None, {"x": False}]}}}
    obj = nodeset(template=template, slurmd={"future": 1}, volumeClaimTemplates=[{"metadata": {"name": "a"}, "odd": 0}])
    assert obj.spec.template is not None
    assert obj.spec.template.spec == template["spec"]
    assert obj.spec.slurmd == {"future": 1}
    assert obj.spec.volumeClaimTemplates == ({"metadata": {"name": "a"}, "odd": 0},)


def test_fields_of_a_newer_release_do_no_harm() -> None:
    assert nodeset(fromTheFuture=True).spec.replicas == 1


@pytest.mark.parametrize(
    "spec",
    [{"replicas": -1}, {"extraConf": "no equals"}, {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "0%"}}}],
)
def test_objects_stored_under_laxer_rules_are_still_read(spec: Tree) -> None:
    assert nodeset(**spec).name == "gpu"


@pytest.mark.parametrize(
    ("hostname", "slurm_name"),
    [("gpu-", "gpu"), ("-gpu--", "gpu"), ("node", "node"), ("a- b", "a"), ("", "gpu"), (None, "gpu"), ("-", "gpu")],
)
def test_slurm_name_comes_from_the_hostname_prefix(hostname: str | None, slurm_name: str) -> None:
    assert nodeset(template={"spec": {"hostname": hostname}}).slurm_name == slurm_name


def test_slurm_name_is_the_own_name_without_a_prefix() -> None:
    assert nodeset().slurm_name == "gpu"


def test_cluster_name_is_namespace_and_name_unless_given() -> None:
    assert read(Controller, KEYS).cluster_name == "slurm_gpu"
    assert read(Controller, KEYS | {"clusterName": "research"}).cluster_name == "research"


def test_the_new_name_of_the_jwt_key_wins() -> None:
    old = {"jwtHs256KeyRef": {"name": "old", "key": "k"}}
    for kind, spec in ((Controller, {}), (Accounting, {}), (Token, {"username": "a"})):
        assert read(kind, spec | old).spec.jwt_ref.name == "old"
        assert read(kind, spec | old | {"jwtKeyRef": {"name": "new", "key": "k"}}).spec.jwt_ref.name == "new"
    assert read(Controller, {"external": True}).spec.jwt_ref is None


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({}, 1),
        ({"ha": {"enabled": False, "backups": 3}}, 1),
        ({"ha": {"enabled": True}}, 2),
        ({"ha": {"enabled": True, "backups": 3}}, 4),
        ({"ha": {"enabled": True, "backups": 3}, "external": True}, 1),
    ],
)
def test_backups_count_only_when_enabled_here(spec: Tree, replicas: int) -> None:
    assert read(Controller, KEYS | spec).spec.replicas == replicas


def test_token_defaults() -> None:
    token = read(Token, KEYS | {"username": "alice"})
    assert (token.secret_name, token.secret_key) == ("gpu-jwt-alice", "SLURM_JWT")
    assert token.spec.validity == timedelta(minutes=15)
    assert read(Token, KEYS | {"username": ""}).spec.user == "nobody"


def test_token_as_asked() -> None:
    token = read(Token, KEYS | {"username": "a", "lifetime": "12h", "secretRef": {"name": "mine", "key": "t"}})
    assert (token.secret_name, token.secret_key) == ("mine", "t")
    assert token.spec.validity == timedelta(hours=12)


def test_members_know_their_controller() -> None:
    assert nodeset().controller_key == ("slurm", "slurm")
    assert read(RestApi, {"controllerRef": {"name": "c"}}).controller_key == ("slurm", "c")


def test_deletion_is_seen() -> None:
    assert not nodeset().deleting
    assert read(Controller, KEYS, deletionTimestamp="2026-01-02T03:04:05Z").deleting


def test_a_status_becomes_a_tree_with_zeros_and_without_blanks() -> None:
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    ready = Condition(type="Ready", status="True", reason="Ready", lastTransitionTime=since)
    made = tree(NodeSetStatus(nodeSetHash="h", selector="a=b", conditions=(ready,)))
    assert made["slurmIdle"] == 0
    assert "collisionCount" not in made
    assert made["conditions"] == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
    ]
