"""Workers that follow the Kubernetes nodes: added, tainted, removed and added again."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.nodeset import Workers, is_protected
from tests.support.places import free_node, powered_off
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for

POOL = "kubeslurm.test/pool"
OVERRIDE = "nodeset.slinky.slurm.net/hostname-override"


@pytest.fixture
def host(slurm: Slurm) -> Iterator[str]:
    """A Kubernetes node without a worker, and without slurmctld."""
    first = Workers(slurm)
    first.scale(1)
    first.wait_until_idle(1)
    found = free_node(slurm)
    yield found
    slurm.cluster.kubectl("taint", "node", found, "repair-", check=False)
    slurm.cluster.kubectl("label", "node", found, f"{POOL}-", check=False)


@pytest.fixture
def daemons(slurm: Slurm, host: str) -> Iterator[Workers]:
    """A NodeSet that wants a worker on every node of the pool, which is empty at first."""
    pod: dict[str, Any] = {"nodeSelector": {POOL: "daemon"}}
    found = Workers.create(
        slurm, "daemons", "daemon-", scalingMode="DaemonSet", pruneSlurmNodeRecords="NodeNotFound", pod=pod
    )
    try:
        wait_for("the NodeSet to be seen", lambda: found.status().get("desired") == 0)
        yield found
    finally:
        found.delete()


def test_workers_follow_nodes(daemons: Workers, host: str) -> None:
    slurm = daemons.slurm
    kubectl = slurm.cluster.kubectl
    kubectl("label", "node", host, f"{POOL}=daemon")
    wait_for("a worker named after the node", lambda: slurm.nodes().get(host) == "idle")
    job = daemons.run_job(600, f"--nodelist={host}")
    kubectl("taint", "node", host, "repair=now:NoSchedule")
    wait_for("the worker to be unwanted", lambda: daemons.status().get("desired") == 0)
    assert "drain" not in slurm.nodes()[host], "who is there may stay"
    kubectl("label", "node", host, f"{POOL}-")
    wait_for("the drain", lambda: slurm.nodes().get(host) == "draining")
    daemons.finish(job)
    wait_for("no worker and no ghost", lambda: not daemons.pods() and host not in slurm.nodes())
    kubectl("taint", "node", host, "repair-")
    kubectl("label", "node", host, f"{POOL}=daemon")
    wait_for("the worker again", lambda: slurm.nodes().get(host) == "idle")


def test_a_daemon_on_the_host_network_is_the_node_that_its_machine_is_called_in_slurm(
    daemons: Workers, host: str
) -> None:
    slurm, kubectl = daemons.slurm, daemons.slurm.cluster.kubectl
    pod: dict[str, Any] = {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "nodeSelector": {POOL: "daemon"},
    }
    daemons.change({"template": {"spec": pod}})
    try:
        kubectl("annotate", "node", host, f"{OVERRIDE}=renamed-1")
        kubectl("label", "node", host, f"{POOL}=daemon")
        wait_for("a worker with the given name", lambda: slurm.nodes().get("renamed-1") == "idle")
        assert host not in slurm.nodes()
        job = daemons.run_job(600, "--nodelist=renamed-1")
        wait_for("its protection", lambda: is_protected(daemons.pod("renamed-1")))
        kubectl("label", "node", host, f"{POOL}-")
        wait_for("the drain", lambda: slurm.nodes().get("renamed-1") == "draining")
        daemons.finish(job)
        wait_for("no worker and no record", lambda: not daemons.pods() and "renamed-1" not in slurm.nodes())
    finally:
        kubectl("annotate", "node", host, f"{OVERRIDE}-", check=False)


def test_a_node_that_is_gone_does_not_hold_its_workers_name(daemons: Workers, host: str) -> None:
    slurm = daemons.slurm
    kubectl = slurm.cluster.kubectl
    kubectl("label", "node", host, f"{POOL}=daemon")
    wait_for("the worker", lambda: slurm.nodes().get(host) == "idle")
    before = daemons.uids()[host]
    owner = slurm.get(NODESET, "daemons")["metadata"]["uid"]
    assert f"Extra=nodeset:{owner}" in slurm.run("scontrol", "show", "node", host)
    with powered_off(slurm, host):
        kubectl("delete", "node", host, "--wait=true")
        wait_for("no worker and no ghost", lambda: not daemons.pods() and host not in slurm.nodes(), within=240)
    wait_for("the node", lambda: host in kubectl("get", "nodes", "--output=name"))
    kubectl("label", "node", host, f"{POOL}=daemon")
    wait_for("the worker again", lambda: slurm.nodes().get(host) == "idle")
    assert daemons.uids()[host] != before
    assert slurm.find(NODESET, "daemons") is not None
