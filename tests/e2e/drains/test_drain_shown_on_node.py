"""On request, a drain made in Slurm shows on the Kubernetes node, and a taint there drains in Slurm.

Neither side undoes what the other decided.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.installation import Installation
from tests.support.nodeset import Workers, node_of
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

MARK = "kubeslurm.dev/slurm-drain"


class Operator:
    """The operator, told how to show drains; started anew only when that changes."""

    def __init__(self, product: Installation) -> None:
        self.product = product
        self.shows_as = ""

    def show_as(self, mode: str) -> None:
        if mode != self.shows_as:
            usual = releases.operator(self.product.tags)
            values = usual.values | {"slurmDrainOnNode": mode, "drainOnNodeTaints": bool(mode)}
            helm.install(self.product.access, msgspec.structs.replace(usual, values=values), wait=True)
            self.shows_as = mode


@pytest.fixture(scope="module")
def operator(product: Installation) -> Iterator[Operator]:
    told = Operator(product)
    yield told
    told.show_as("")


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    found = Workers(slurm)
    yield found
    slurm.run("scontrol", "update", f"nodename={','.join(found.names())}", "state=resume", check=False)
    for key in (MARK, "repair"):
        slurm.cluster.kubectl("taint", "nodes", "--all", f"{key}-", check=False)


@pytest.fixture
def name(workers: Workers) -> str:
    return workers.one()


class Shown(NamedTuple):
    """What a Kubernetes node shows of a drain in Slurm."""

    said: str = ""
    tainted: bool = False
    cordoned: bool = False


def shown(workers: Workers, host: str) -> Shown:
    tree: dict[str, Any] = workers.slurm.get("node", host)
    said = (each["message"] for each in tree["status"]["conditions"] if each["type"] == "SlurmDrain")
    taints = {(each["key"], each["effect"]) for each in tree["spec"].get("taints", [])}
    return Shown(next(said, ""), (MARK, "NoSchedule") in taints, tree["spec"].get("unschedulable", False))


def mark(workers: Workers, host: str) -> str | None:
    annotations: dict[str, str] = workers.slurm.get("node", host)["metadata"]["annotations"]
    return annotations.get(MARK)


def scontrol(workers: Workers, name: str, *update: str) -> None:
    workers.slurm.run("scontrol", "update", f"nodename={name}", *update)


def test_a_taint_shows_a_drain_until_a_user_removes_it_or_a_cordon_takes_its_place(
    operator: Operator, workers: Workers, name: str
) -> None:
    operator.show_as("Taint")
    host, pod = node_of(workers.pod(name)), workers.uid(name)
    scontrol(workers, name, "state=drain", "reason=bad disk")
    wait_for("the taint", lambda: shown(workers, host) == Shown(f"{name}: bad disk", tainted=True))
    wait_for("the mark", lambda: mark(workers, host) == "Taint")
    # A user's removal holds although the drain in Slurm goes on; the next drain is another one.
    workers.slurm.cluster.kubectl("taint", "node", host, f"{MARK}-")
    scontrol(workers, name, "state=drain", "reason=still bad")
    wait_for("the new reason", lambda: shown(workers, host) == Shown(f"{name}: still bad"))
    scontrol(workers, name, "state=resume")
    wait_for("the node to be itself again", lambda: shown(workers, host) == Shown())
    scontrol(workers, name, "state=drain", "reason=bad again")
    wait_for("the taint", lambda: shown(workers, host) == Shown(f"{name}: bad again", tainted=True))
    operator.show_as("Cordon")
    wait_for("the cordon", lambda: shown(workers, host) == Shown(f"{name}: bad again", cordoned=True))
    # Neither way drains a second time in Slurm, nor drives the worker away.
    assert workers.reasons().get(name, "") == "bad again"
    assert workers.uid(name) == pod
    scontrol(workers, name, "state=resume")
    wait_for("the node to be itself again", lambda: shown(workers, host) == Shown())
    workers.wait_until_idle(2)


def test_an_admins_drain_cordons_the_node_until_it_is_resumed(operator: Operator, workers: Workers, name: str) -> None:
    operator.show_as("Cordon")
    host = node_of(workers.pod(name))
    scontrol(workers, name, "state=drain", "reason=bad fan")
    wait_for("the cordon", lambda: shown(workers, host) == Shown(f"{name}: bad fan", cordoned=True))
    assert workers.reasons().get(name, "") == "bad fan"
    scontrol(workers, name, "state=resume")
    wait_for("the node to be itself again", lambda: shown(workers, host) == Shown())
    workers.wait_until_idle(2)
    # A user's uncordon is respected although the drain in Slurm goes on.
    scontrol(workers, name, "state=drain", "reason=bad fan again")
    wait_for("the cordon", lambda: shown(workers, host).cordoned)
    workers.slurm.cluster.kubectl("uncordon", host)
    scontrol(workers, name, "state=drain", "reason=still bad")
    wait_for("the new reason", lambda: shown(workers, host) == Shown(f"{name}: still bad"))
    # A user's cordon outlives the admin's drain, and is what Slurm is told then.
    workers.slurm.cluster.kubectl("cordon", host)
    workers.slurm.cluster.kubectl("annotate", "node", host, f"{MARK}-")
    wait_for("the cordon to be left to the user", lambda: mark(workers, host) == "Seen")
    scontrol(workers, name, "state=resume")
    wait_for("the user's cordon to drain", lambda: f"Node ({host}) was cordoned" in workers.reasons().get(name, ""))
    wait_for("the user's cordon alone", lambda: shown(workers, host) == Shown(cordoned=True))
    workers.slurm.cluster.kubectl("uncordon", host)
    workers.wait_until_idle(2)


def test_as_a_condition_a_drain_is_only_said_and_an_earlier_cordon_for_it_is_undone(
    operator: Operator, workers: Workers, name: str
) -> None:
    operator.show_as("Cordon")
    host = node_of(workers.pod(name))
    scontrol(workers, name, "state=drain", "reason=bad cable")
    wait_for("the cordon", lambda: shown(workers, host) == Shown(f"{name}: bad cable", cordoned=True))
    operator.show_as("Condition")
    wait_for("the condition alone", lambda: shown(workers, host) == Shown(f"{name}: bad cable"))
    wait_for("no mark", lambda: mark(workers, host) is None)
    assert workers.reasons().get(name, "") == "bad cable"
    scontrol(workers, name, "state=resume")
    wait_for("the node to be itself again", lambda: shown(workers, host) == Shown())
    workers.wait_until_idle(2)


def test_a_taint_that_workers_do_not_tolerate_drains(operator: Operator, workers: Workers, name: str) -> None:
    operator.show_as("Cordon")
    host = node_of(workers.pod(name))
    workers.slurm.cluster.kubectl("taint", "node", host, "repair=now:NoSchedule")
    wait_for("the drain", lambda: workers.slurm.nodes().get(name) == "drained")
    workers.slurm.cluster.kubectl("taint", "node", host, "repair-")
    workers.wait_until_idle(2)
