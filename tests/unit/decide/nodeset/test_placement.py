"""Which Kubernetes nodes take a daemon worker."""

from typing import Any

import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.nodeset import WorkerTemplate
from kubeslurm.api.views import Taint
from kubeslurm.decide.nodeset.placement import Fit, misplaced, vacant
from tests.support.workers import host, nodeset, worker


def fit(**spec: Any) -> Fit:
    return Fit(nodeset(scalingMode="DaemonSet", template=WorkerTemplate(spec=spec)))


def terms(*tests: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(tests)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


LABELS = {"kind": "gpu", "rank": "5"}
AFFINITIES: dict[str, tuple[dict[str, Any], bool]] = {
    "no wish": ({}, True),
    "selector matches": ({"nodeSelector": {"kind": "gpu"}}, True),
    "selector differs": ({"nodeSelector": {"kind": "cpu"}}, False),
    "In": (terms({"key": "kind", "operator": "In", "values": ["gpu", "x"]}), True),
    "In, absent key": (terms({"key": "zone", "operator": "In", "values": ["a"]}), False),
    "NotIn": (terms({"key": "kind", "operator": "NotIn", "values": ["gpu"]}), False),
    "NotIn, absent key": (terms({"key": "zone", "operator": "NotIn", "values": ["a"]}), True),
    "Exists": (terms({"key": "kind", "operator": "Exists"}), True),
    "DoesNotExist": (terms({"key": "kind", "operator": "DoesNotExist"}), False),
    "Gt": (terms({"key": "rank", "operator": "Gt", "values": ["4"]}), True),
    "Lt": (terms({"key": "rank", "operator": "Lt", "values": ["5"]}), False),
    "Gt of a word": (terms({"key": "kind", "operator": "Gt", "values": ["4"]}), False),
    "all tests of a term": (
        terms({"key": "kind", "operator": "Exists"}, {"key": "zone", "operator": "Exists"}),
        False,
    ),
}


@pytest.mark.parametrize(("spec", "fits"), AFFINITIES.values(), ids=AFFINITIES)
def test_selectors_and_affinity_are_those_of_the_scheduler(spec: dict[str, Any], fits: bool) -> None:
    assert fit(**spec).may_start(host("host-1", labels=LABELS)) is fits


def test_a_no_schedule_taint_keeps_newcomers_away_and_lets_workers_stay() -> None:
    tainted = host("host-1", taints=(Taint(key="a", effect="NoSchedule"),))
    assert not fit().may_start(tainted)
    assert fit().may_stay(tainted)


def test_a_no_execute_taint_sends_workers_away() -> None:
    assert not fit().may_stay(host("host-1", taints=(Taint(key="a", effect="NoExecute"),)))


def test_a_cordoned_node_gets_its_worker_back() -> None:
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    assert fit().may_start(host("host-1", unschedulable=True, taints=(cordon,)))


def test_a_tolerated_taint_is_no_obstacle() -> None:
    found = fit(tolerations=[{"key": "a", "operator": "Equal", "value": "b"}])
    assert found.may_start(host("host-1", taints=(Taint(key="a", value="b", effect="NoSchedule"),)))
    assert not found.may_start(host("host-1", taints=(Taint(key="a", value="c", effect="NoSchedule"),)))


def daemon(ordinal: int, **fields: Any) -> Any:
    return worker(ordinal, mode="DaemonSet", **({"hostname": f"host-{ordinal}"} | fields))


def test_of_two_workers_on_one_node_the_one_that_works_stays() -> None:
    working = daemon(1)
    idle = daemon(2, node="host-1", hostname="host-1", ready=False)
    assert misplaced([working, idle], [host("host-1")], fit()) == [idle]


def test_a_node_with_another_name_in_slurm_gets_a_new_worker() -> None:
    renamed = host("host-1", annotations={names.HOSTNAME_OVERRIDE: "rack7"})
    assert [each.name for each in misplaced([daemon(1)], [renamed], fit())] == ["gpu-1"]


def test_a_terminating_worker_still_holds_its_node() -> None:
    assert vacant([daemon(1, deleting=True)], [host("host-1")], fit()) == []


def test_a_node_without_a_worker_is_vacant() -> None:
    assert [each.name for each in vacant([daemon(1)], [host("host-1"), host("host-2")], fit())] == ["host-2"]
