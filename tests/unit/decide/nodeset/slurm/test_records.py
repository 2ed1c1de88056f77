"""Slurm nodes without a pod: which are fenced, which are deleted."""

from typing import Any

from kubeslurm.decide.nodeset.slurm.records import (
    belongs_to,
    deletable,
    fence_reason,
    fence_update,
    has_pod,
    sort_out,
    unnamed,
    without_comment,
)
from kubeslurm.decide.nodeset.worker import PodInfo
from kubeslurm.slurm.rest.models import Node, NodeUpdate
from tests.support.workers import nodeset, pod, slurm_node


def test_an_admins_drain_outlives_the_pod() -> None:
    drained = slurm_node(1, "IDLE", "DRAIN", reason="bad fan")
    assert sort_out([drained], {"gpu-1"}).remove == ()
    assert sort_out([drained], set()).remove == ("gpu-1",)


def test_what_an_admin_decided_outlives_the_pod_inside_a_reason_of_ours() -> None:
    """The admin set the node down, a rollout drained it and took its pod away."""
    for state in (("DOWN", "DRAIN"), ("DOWN",)):
        down = slurm_node(1, *state, reason="slurm-operator: Pod (slurm/gpu-1) is pending (was: bad PSU)")
        assert sort_out([down], {"gpu-1"}).remove == ()
        assert sort_out([down], set()).remove == ("gpu-1",)


def test_a_record_without_a_comment_is_ours_if_slurmd_said_so() -> None:
    ours, theirs = {"comment": "", "extra": "nodeset:uid-gpu"}, {"comment": "", "extra": "nodeset:uid-other"}
    lost, busy = slurm_node(1, "IDLE", **ours), slurm_node(2, "MIXED", **ours)
    named = slurm_node(3, "DOWN", extra="nodeset:uid-gpu")
    assert without_comment(nodeset(), [lost, busy, named, slurm_node(4, "DOWN", **theirs)]) == [lost]
    assert without_comment(nodeset(), [lost], placed=False) == []


def test_a_record_without_a_comment_or_mark_is_ours_by_feature_name_and_silence() -> None:
    silent = ("DOWN", "NOT_RESPONDING")
    feature: dict[str, Any] = {"comment": "", "features": ("gpu",)}
    lost = slurm_node(1, *silent, **feature)
    answering, featureless = slurm_node(2, "DOWN", **feature), slurm_node(3, *silent, comment="")
    other_name = Node(name="host-1", state=silent, features=("gpu",))
    assert without_comment(nodeset(), [lost, answering, featureless, other_name]) == [lost]


def test_a_fenced_node_is_not_fenced_again() -> None:
    found = sort_out([slurm_node(1, "DOWN", "COMPLETING")], set())
    assert (found.fence, found.remove) == ((), ())


def test_a_fence_names_the_pod() -> None:
    assert fence_reason(slurm_node(1)) == "slurm-operator: Pod (slurm/gpu-1) is gone"


def test_the_record_of_a_nodeset_of_the_same_name_elsewhere_is_not_ours() -> None:
    info = PodInfo("slurm", "gpu-1", "host-1", "gpu", "uid-of-another-cluster")
    assert not belongs_to(nodeset(), info, slurm_node(1, "MIXED"))
    assert not belongs_to(nodeset(), info, slurm_node(1, "IDLE"))
    assert belongs_to(nodeset(), info, slurm_node(1, "DOWN", "NOT_RESPONDING"))


def test_a_record_that_refuses_every_successor_is_deleted_even_with_slurms_reason() -> None:
    refused = slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason="gres/gpu count reported lower than configured")
    assert sort_out([refused], {"gpu-1"}).remove == ("gpu-1",)


def test_an_admins_drain_of_a_refused_node_outlives_the_pod_too() -> None:
    refused = slurm_node(1, "IDLE", "DRAIN", "INVALID_REG", reason="bad GPU")
    assert sort_out([refused], {"gpu-1"}).remove == ()


def test_a_record_that_names_no_pod_stays_while_an_unknown_pod_is_listed() -> None:
    nodes: dict[str, Node | None] = {"gpu-1": slurm_node(1, comment=""), "gpu-2": slurm_node(2), "gpu-3": None}
    assert unnamed(nodes, nodes) == {"gpu-1"}
    assert deletable(nodes, {"gpu-1"}, {"a"}, {"a"}) == ["gpu-1", "gpu-2", "gpu-3"]
    assert deletable(nodes, {"gpu-1"}, {"a"}, {"a", "b"}) == ["gpu-2", "gpu-3"]


def test_only_the_very_pod_that_a_record_names_keeps_it_from_being_fenced() -> None:
    assert has_pod(slurm_node(1), pod(1))
    assert not has_pod(slurm_node(1), None)
    assert not has_pod(slurm_node(1), pod(1, uid="another"))
    assert not has_pod(slurm_node(1), pod(1, phase="Failed"))
    assert has_pod(slurm_node(1, comment=PodInfo("slurm", "gpu-1").text), pod(1, uid="another"))


def test_a_node_is_fenced_only_if_it_still_is_as_planned() -> None:
    planned = slurm_node(1, "MIXED")
    assert fence_update(planned, planned, "x") == NodeUpdate.down("x")
    for now in (
        None,
        slurm_node(1),
        slurm_node(1, "DOWN", "COMPLETING"),
        slurm_node(1, "MIXED", comment="another pod"),
    ):
        assert fence_update(planned, now, "x") is None


def test_a_fence_keeps_the_reason_of_an_admin() -> None:
    planned = slurm_node(1, "MIXED")
    assert fence_update(planned, slurm_node(1, "MIXED", "DRAIN", reason="bad fan"), "x") == NodeUpdate(state=("DOWN",))
    ours = slurm_node(1, "MIXED", "DRAIN", reason="slurm-operator: y")
    assert fence_update(planned, ours, "x") == NodeUpdate.down("x")
