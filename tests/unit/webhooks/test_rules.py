"""What admission refuses, what it warns about, and what it allows."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubeslurm.api.kinds import CONTROLLER, LOGINSET, NODESET, PERSISTENT_VOLUME_CLAIM, RESTAPI, Kind
from kubeslurm.api.views import ConfigMap, PersistentVolumeClaim
from kubeslurm.webhooks.rules import Facts, validate

KEY = {"name": "slurm-auth", "key": "slurm.key"}


def make(
    kind: Kind[Any], spec: dict[str, Any], *, name: str = "slurm", namespace: str = "slurm", **metadata: Any
) -> Any:
    tree = {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}
    return msgspec.convert(tree, kind.type)


def controller(name: str = "slurm", namespace: str = "slurm", **spec: Any) -> Any:
    return make(CONTROLLER, {"slurmKeyRef": KEY, "jwtKeyRef": KEY, **spec}, name=name, namespace=namespace)


def configmap(*keys: str) -> ConfigMap:
    tree = {"metadata": {"name": "extra"}, "data": dict.fromkeys(keys, "")}
    return msgspec.convert(tree, ConfigMap)


def claim(*modes: str) -> PersistentVolumeClaim:
    tree = {"metadata": {"name": "state"}, "spec": {"accessModes": list(modes)}}
    return msgspec.convert(tree, PERSISTENT_VOLUME_CLAIM.type)


SHARED: dict[str, Any] = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}}
REFERS: dict[str, Any] = {"configFileRefs": [{"name": "extra"}]}

REFUSED = {
    "a name that is too long only with its namespace": (
        controller("a" * 20, "b" * 20),
        None,
        Facts(),
        "set spec.clusterName to a shorter one",
    ),
    "a renamed cluster": (
        controller(clusterName="new"),
        controller(clusterName="old"),
        Facts(),
        "make a new Controller",
    ),
    "a cluster renamed by leaving its name out": (
        controller(),
        controller(clusterName="old"),
        Facts(),
        "cannot be renamed to slurm_slurm",
    ),
    "a missing ConfigMap": (controller(**REFERS), None, Facts({"extra": None}), "create it first"),
    "a ConfigMap with slurm.conf": (
        controller(**REFERS),
        None,
        Facts({"extra": configmap("slurm.conf")}),
        "use spec.extraConf",
    ),
    "backups on a volume for a single node": (
        controller(**SHARED),
        None,
        Facts(claim=claim("ReadWriteOnce")),
        "ReadWriteMany",
    ),
}

ALLOWED = {
    "an ordinary cluster": (controller(), None, Facts()),
    "a long name that was there before": (
        controller("a" * 30, "b" * 30, extraConf="x"),
        controller("a" * 30, "b" * 30),
        Facts(),
    ),
    "the default name set explicitly": (controller(clusterName="slurm_slurm"), controller(), Facts()),
    "a ConfigMap with known files": (
        controller(**REFERS),
        None,
        Facts({"extra": configmap("gres.conf", "topology.yaml")}),
    ),
    "backups on a shared volume": (controller(**SHARED), None, Facts(claim=claim("ReadWriteMany"))),
    "backups on a volume that does not exist yet": (controller(**SHARED), None, Facts()),
}

WARNED = {
    "an unknown file": (controller(**REFERS), None, Facts({"extra": configmap("notes.txt")}), "notes.txt"),
    "a ConfigMap that was deleted later": (
        controller(**REFERS, extraConf="x"),
        controller(**REFERS),
        Facts({"extra": None}),
        "or remove the reference",
    ),
    "external addresses": (controller(service={"spec": {"externalIPs": ["192.0.2.1"]}}), None, Facts(), "LoadBalancer"),
    "external addresses of a login": (
        make(
            LOGINSET,
            {
                "controllerRef": {"name": "slurm"},
                "sssdConfRef": KEY,
                "service": {"spec": {"externalIPs": ["192.0.2.1"]}},
            },
        ),
        None,
        Facts(),
        "LoadBalancer",
    ),
    "external addresses of slurmrestd": (
        make(RESTAPI, {"controllerRef": {"name": "slurm"}, "service": {"spec": {"externalIPs": ["192.0.2.1"]}}}),
        None,
        Facts(),
        "LoadBalancer",
    ),
    "two NodeSets with the same name in Slurm": (
        make(NODESET, {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": "gpu-"}}}, name="a"),
        None,
        Facts(
            nodesets=(
                make(
                    NODESET, {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": "gpu-"}}}, name="b"
                ),
                make(
                    NODESET, {"controllerRef": {"name": "other"}, "template": {"spec": {"hostname": "gpu-"}}}, name="c"
                ),
            )
        ),
        "the NodeSet b of the same cluster",
    ),
    "an object that could not be read": (controller(**REFERS), None, Facts(unchecked=("not checked",)), "not checked"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_violation_is_refused_with_a_remedy(case: str) -> None:
    new, old, facts, message = REFUSED[case]
    decision = validate(new, old, facts)
    assert len(decision.errors) == 1
    assert message in decision.errors[0]


@pytest.mark.parametrize("case", ALLOWED)
def test_a_valid_object_is_allowed_without_warnings(case: str) -> None:
    new, old, facts = ALLOWED[case]
    decision = validate(new, old, facts)
    assert (decision.errors, decision.warnings) == ((), ())


@pytest.mark.parametrize("case", WARNED)
def test_a_doubtful_object_is_allowed_with_a_warning(case: str) -> None:
    new, old, facts, message = WARNED[case]
    decision = validate(new, old, facts)
    assert decision.errors == ()
    assert len(decision.warnings) == 1
    assert message in decision.warnings[0]


@pytest.mark.parametrize("case", REFUSED)
def test_an_object_that_is_being_deleted_may_always_be_written(case: str) -> None:
    new, old, facts, _ = REFUSED[case]
    deleted = msgspec.structs.replace(new.metadata, deletionTimestamp=datetime(2026, 11, 15, tzinfo=UTC))
    assert validate(msgspec.structs.replace(new, metadata=deleted), old, facts).errors == ()


@pytest.mark.parametrize("case", REFUSED)
def test_an_object_whose_spec_does_not_change_may_always_be_written(case: str) -> None:
    new, _, facts, _ = REFUSED[case]
    assert validate(new, new, facts).errors == ()
