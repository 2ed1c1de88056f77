"""What is written to Slurm nodes, and in how many calls."""

from kubeslurm.api import names
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.slurm.drain import DrainReason
from kubeslurm.decide.nodeset.slurm.updates import (
    STATELESS_CALLS,
    calls,
    for_kubernetes_nodes,
    lifted,
    permitted,
    renewed,
    updates,
    with_comments,
)
from kubeslurm.decide.nodeset.worker import PodInfo, Worker
from kubeslurm.slurm.rest.models import Node, NodeUpdate
from tests.support.workers import host, slurmd, worker


def test_a_new_worker_gets_the_comment_that_names_its_pod() -> None:
    fresh = worker(1, slurm={"comment": ""})
    assert updates([fresh], {}, ()) == {"gpu-1": NodeUpdate(comment=fresh.info)}


def test_the_comment_keeps_the_form_that_other_tools_read() -> None:
    text = PodInfo("slurm", "gpu-1", "host-1", "gpu", "uid-gpu").text
    assert text == (
        '{"namespace":"slurm","podName":"gpu-1","node":"host-1","nodeSetName":"gpu","nodeSetUID":"uid-gpu"}'
    )


def test_a_restarted_worker_keeps_the_comment_that_shows_the_restart() -> None:
    restarted = worker(1, "MIXED", status=slurmd(container="containerd://2"))
    assert updates([restarted], {}, {"gpu-1"}) == {}


def test_a_worker_without_a_running_slurmd_is_not_named() -> None:
    assert updates([worker(1, status=slurmd(started=False), slurm={"comment": ""})], {}, ()) == {}


def test_state_and_comment_go_in_one_call() -> None:
    fresh = worker(1, slurm={"comment": ""})
    found = updates([fresh], {"gpu-1": DrainReason(Cause.NODE, "slurm-operator: x")}, ())
    assert found == {"gpu-1": NodeUpdate(state=("DRAIN",), reason="slurm-operator: x", comment=fresh.info)}


def test_only_drains_for_a_kubernetes_node_need_no_patch_of_the_pod_first() -> None:
    workers = [worker(number) for number in range(4)]
    made = {name: NodeUpdate.drain("x") for name in ("gpu-0", "gpu-1", "gpu-3")} | {"gpu-2": NodeUpdate(comment="x")}
    reasons = {
        "gpu-0": DrainReason(Cause.NODE, "x"),
        "gpu-1": DrainReason(Cause.USER, "x"),
        "gpu-2": DrainReason(Cause.NODE, "x"),
    }
    assert for_kubernetes_nodes(made, workers, reasons) == {"gpu-0": made["gpu-0"]}


def test_topology_is_written_only_on_difference_and_never_empty() -> None:
    spec = {names.TOPOLOGY_SPEC: "topo:a:b"}
    there = host("host-1", annotations=spec)
    assert updates([worker(1, host=there)], {}, ()) == {"gpu-1": NodeUpdate(topology_str="topo:a:b")}
    assert updates([worker(1, host=there, slurm={"topology": "topo:a:b"})], {}, ()) == {}
    assert updates([worker(1, slurm={"topology": "default:x"})], {}, ()) == {}


def test_features_of_the_kubernetes_node_replace_only_their_own_kind() -> None:
    there = host("host-1", annotations={names.FEATURES_SPEC: "nvme, ib"})
    have = {"features": ("gpu", "k8s/old"), "active_features": ("gpu",)}
    assert updates([worker(1, host=there, slurm=have)], {}, ()) == {
        "gpu-1": NodeUpdate(features=("gpu", "k8s/ib", "k8s/nvme"), features_act=("gpu", "k8s/ib", "k8s/nvme"))
    }


def test_nodes_with_the_same_update_share_a_call() -> None:
    resume, drain = NodeUpdate.resume(), NodeUpdate.drain("x")
    assert calls({"a": resume, "b": drain, "c": resume}) == [(resume, ["a", "c"]), (drain, ["b"])]


def test_drains_come_before_comments_and_not_too_many_comments_come_at_once() -> None:
    drain = NodeUpdate(state=("DRAIN",), reason="x")
    comments = {f"n-{number}": NodeUpdate(comment=str(number)) for number in range(STATELESS_CALLS + 10)}
    found = calls(comments | {"busy": drain})
    assert found[0] == (drain, ["busy"])
    assert len(found) == 1 + STATELESS_CALLS


def reread(made: list[Worker], *nodes: Node) -> dict[str, NodeUpdate]:
    """What is still due for drained workers after Slurm was read again."""
    reasons = {each.name: DrainReason(Cause.NODE, "slurm-operator: x") for each in made}
    found = {each.name: each.node for each in made} | {node.name: node for node in nodes}
    return renewed(updates(made, reasons, ()), made, found.get, reasons, ())


def test_a_change_that_a_newer_reading_shows_already_is_not_made_again() -> None:
    made = [worker(1), worker(2)]
    drained = worker(1, "IDLE", "DRAIN", reason="slurm-operator: x").node
    assert drained is not None
    assert list(reread(made)) == ["gpu-1", "gpu-2"]
    assert list(reread(made, drained)) == ["gpu-2"]


def test_a_node_that_merely_got_a_job_meanwhile_is_drained_all_the_same() -> None:
    busy = worker(1, "MIXED").node
    assert busy is not None
    assert list(reread([worker(1)], busy)) == ["gpu-1"]


def test_an_admin_who_drained_a_node_meanwhile_is_not_overruled() -> None:
    theirs = worker(1, "IDLE", "DRAIN", reason="broken fan").node
    assert theirs is not None
    assert reread([worker(1)], theirs) == {}


def test_a_node_that_a_newer_reading_shows_as_restarted_keeps_its_comment() -> None:
    restarted = worker(1, status=slurmd(container="containerd://2"))
    busy = worker(1, "MIXED").node
    made = updates([restarted], {}, ())
    assert made == {"gpu-1": NodeUpdate(comment=restarted.info)}
    assert renewed(made, [restarted], lambda _name: busy, {}, ()) == {}


def test_only_drains_that_are_not_an_admins_are_lifted() -> None:
    resume, drain = NodeUpdate.resume(), NodeUpdate.drain("x")
    planned = {"gpu-1": resume, "gpu-2": resume, "gpu-3": resume, "gpu-4": resume, "gpu-5": drain}
    read = {
        "gpu-1": worker(1, "IDLE", "DRAIN", reason="slurm-operator: x").node,
        "gpu-2": worker(2, "IDLE", "DRAIN", reason="broken fan").node,
        "gpu-3": None,
    }
    assert lifted(planned) == ["gpu-1", "gpu-2", "gpu-3", "gpu-4"]
    assert permitted(planned, read) == {"gpu-1": resume, "gpu-5": drain}


def test_a_comment_is_renewed_along_with_other_updates() -> None:
    one, other = worker(1), worker(2)
    assert with_comments({"gpu-1": NodeUpdate.resume()}, [one, other]) == {
        "gpu-1": NodeUpdate(state=("RESUME",), comment=one.info),
        "gpu-2": NodeUpdate(comment=other.info),
    }
