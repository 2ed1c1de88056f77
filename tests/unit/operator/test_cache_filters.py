from collections.abc import Mapping

import msgspec
import pytest

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONFIGMAP, POD, SECRET
from kubeslurm.api.meta import ObjectMeta, OwnedMeta, OwnerReference
from kubeslurm.api.views import ConfigMap, Pod, Secret
from kubeslurm.build.controller import trial as build
from kubeslurm.operator import cache_filters
from tests.support.workers import controller

REPLICASET = OwnerReference(apiVersion="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=True)
NODESET = OwnerReference(apiVersion=names.API_VERSION, kind="NodeSet", name="gpu", uid="2", controller=True)


def pod(own: Mapping[str, str], *owners: OwnerReference) -> Pod:
    return Pod(metadata=ObjectMeta(name="a", labels=dict(own), ownerReferences=owners))


@pytest.mark.parametrize(
    "own",
    [
        labels.slurmctld("main"),
        labels.slurmrestd("main"),
        labels.slurmdbd("main"),
        labels.login("main"),
        labels.worker("gpu", "main"),
    ],
    ids=lambda own: own[names.LABEL_NAME],
)
def test_pods_of_every_daemon_are_held(own: dict[str, str]) -> None:
    assert cache_filters.of(POD)(pod(own))


def test_pods_that_the_operator_makes_are_held_whatever_their_labels() -> None:
    trial = msgspec.convert(build.pod(controller(), "digest"), type=Pod)
    assert cache_filters.of(POD)(trial)
    assert cache_filters.of(POD)(pod({}, NODESET))


@pytest.mark.parametrize("found", [pod({}), pod({names.LABEL_NAME: "web"}, REPLICASET)])
def test_pods_of_others_are_not(found: Pod) -> None:
    assert not cache_filters.of(POD)(found)


def test_any_secret_but_a_release_of_helm_is_held() -> None:
    held = cache_filters.of(SECRET)
    assert held(Secret(metadata=OwnedMeta(name="a"), type="Opaque"))
    assert held(Secret(metadata=OwnedMeta(name="a")))
    assert not held(Secret(metadata=OwnedMeta(name="a"), type="helm.sh/release.v1"))


def test_all_objects_of_other_kinds_are_held() -> None:
    assert cache_filters.of(CONFIGMAP)(ConfigMap(metadata=OwnedMeta(name="a")))
