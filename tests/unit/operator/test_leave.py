"""Removing the operator: what it waits for, and what it leaves behind."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, DEPLOYMENT, LEASE, NODESET, Kind
from kubeslurm.api.names import FINALIZER
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Conflict
from kubeslurm.operator.leave import Leave
from kubeslurm.operator.process import StillBusyError
from kubeslurm.operator.settings.model import LeaveSettings

SPECS: dict[str, Any] = {"NodeSet": {"controllerRef": {"name": "slurm"}}}


def held(kind: Kind[Any], name: str, *, deleting: bool = False, finalizer: str = FINALIZER) -> tuple[Kind[Any], Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "slurm", "finalizers": [finalizer]}
    if deleting:
        metadata["deletionTimestamp"] = datetime(2026, 11, 15, tzinfo=UTC)
    return kind, msgspec.convert({"metadata": metadata, "spec": SPECS.get(kind.kind, {})}, kind.type)


class Cluster:
    """Holds the objects given, and an operator that stops some looks after it was told to."""

    def __init__(self, *objects: tuple[Kind[Any], Any], drained_after: int = 0) -> None:
        self.objects = list(objects)
        self.drained_after = drained_after
        self.replicas = 2
        self.holder = "operator"
        self.conflicts = 1
        self.log: list[str] = []
        self.deleted: set[str] = set()

    async def list(self, kind: Kind[Any], namespace: str = "") -> list[Any]:
        if kind is NODESET:
            self.drained_after -= 1
            if self.drained_after == 0:
                self.objects = [(each, obj) for each, obj in self.objects if not obj.deleting]
        return [obj for each, obj in self.objects if each is kind]

    async def get(self, kind: Kind[Any], key: Key) -> Any:
        if kind is LEASE:
            spec = {"holderIdentity": self.holder, "renewTime": datetime.now(UTC)}
            self.holder = ""
            return msgspec.convert({"metadata": {"name": key.name}, "spec": spec}, kind.type)
        return msgspec.convert({"metadata": {"name": key.name}, "status": {"replicas": self.replicas}}, kind.type)

    async def patch(self, kind: Kind[Any], key: Key, patch: Any) -> Any:
        assert kind is DEPLOYMENT
        self.replicas = patch["spec"]["replicas"]
        self.log.append(f"scale {key.name}")

    async def delete(self, kind: Kind[Any], key: Key) -> None:
        assert kind is CONFIGMAP
        self.deleted.add(key.name)

    async def remove_finalizer(self, kind: Kind[Any], obj: Any, name: str) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict(409, "Conflict", "changed meanwhile")
        self.objects = [(each, other) for each, other in self.objects if other is not obj]
        self.log.append(f"release {obj.name}")


def leaver(cluster: Any) -> Leave:
    return Leave(LeaveSettings(namespace="slinky", wait=30), cluster)


@pytest.mark.looptime
async def test_the_operator_stops_before_its_objects_are_released() -> None:
    cluster = Cluster(held(CONTROLLER, "a"), held(NODESET, "b"))
    await leaver(cluster).run()
    assert cluster.log[0] == "scale slurm-operator"
    assert sorted(cluster.log[1:]) == ["release a", "release b"]
    assert cluster.deleted == {"a-second-owner"}, "garbage collection must find the cluster when it is deleted later"


@pytest.mark.looptime
async def test_a_deletion_under_way_is_finished_by_the_operator_first() -> None:
    cluster = Cluster(held(NODESET, "going", deleting=True), held(CONTROLLER, "staying"), drained_after=5)
    await leaver(cluster).run()
    assert cluster.log == ["scale slurm-operator", "release staying"]


@pytest.mark.looptime
async def test_a_deletion_that_does_not_finish_keeps_the_operator() -> None:
    cluster = Cluster(held(NODESET, "busy", deleting=True))
    with pytest.raises(StillBusyError, match="NodeSet slurm/busy"):
        await leaver(cluster).run()
    assert cluster.log == []


@pytest.mark.looptime
async def test_finalizers_of_others_are_left_alone() -> None:
    cluster = Cluster(held(NODESET, "theirs", finalizer="example.org/other"))
    await leaver(cluster).run()
    assert cluster.log == ["scale slurm-operator"]
