"""Every planned act on a NodeSet, alone and with something failing in its middle, while jobs run: none is harmed."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.nodeset import Workers, counted, evict, is_protected, node_of
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for

A_MINUTE = 60

Act = Callable[[Workers, int], Iterator[None]]


class Fault:
    """What happens in the middle of an act; jobs last long enough to be running all the while."""

    def __init__(self, name: str, seconds: int, strike: Callable[[Workers], None]) -> None:
        self.name = name
        self.seconds = seconds
        self.strike = strike


def nothing(_workers: Workers) -> None:
    return


def operator_killed(workers: Workers) -> None:
    workers.kill_operator()


def slurmrestd_away(workers: Workers) -> None:
    with workers.without_slurmrestd():
        # How long it is away is the fault itself, so here a clock is what to wait for.
        back = time.monotonic() + A_MINUTE
        wait_for("a minute to pass", lambda: time.monotonic() >= back, within=2 * A_MINUTE, every=1)


def scale(workers: Workers, seconds: int) -> Iterator[None]:
    """0 -> 3 -> 1 -> 3."""
    for replicas in (0, 3):
        workers.scale(replicas)
        reached(workers, replicas)
    job = workers.run_job(seconds, "--nodes=3")
    workers.scale(1)
    wait_for("two to drain", lambda: states(workers).count("draining") == 2)
    yield
    workers.unharmed(job)
    reached(workers, 1)
    workers.scale(3)
    reached(workers, 3)


def rolling_update(workers: Workers, seconds: int) -> Iterator[None]:
    before = workers.uids()
    job = workers.run_job(seconds, "--nodes=2")
    workers.change_template()
    wait_for("one to drain", lambda: "draining" in states(workers))
    yield
    workers.unharmed(job)
    wait_for("all to be replaced", lambda: is_renewed(workers, before), within=150)


def cordon(workers: Workers, seconds: int) -> Iterator[None]:
    name = workers.one()
    host = node_of(workers.pod(name))
    job = workers.run_job(seconds, "--nodes=2")
    workers.slurm.cluster.kubectl("cordon", host)
    wait_for("the drain", lambda: workers.slurm.nodes().get(name) == "draining")
    yield
    workers.unharmed(job)
    workers.slurm.cluster.kubectl("uncordon", host)


def eviction(workers: Workers, seconds: int) -> Iterator[None]:
    job = workers.run_job(seconds, "--nodes=2")
    name = workers.one()
    pod, uid = workers.pod(name)["metadata"]["name"], workers.uid(name)
    wait_for("the protection", lambda: is_protected(workers.pod(name)))
    wait_for("the budget to count it", lambda: counted(workers.slurm) > 0)
    assert evict(workers.slurm, pod)
    yield
    assert evict(workers.slurm, pod)
    assert workers.uid(name) == uid
    workers.unharmed(job)
    wait_for("the protection to end", lambda: not is_protected(workers.pod(name)), within=120)
    wait_for("the eviction to be granted", lambda: evict(workers.slurm, pod) == "")
    wait_for("another pod", lambda: workers.uids().get(name, uid) != uid)


def deletion(workers: Workers, seconds: int) -> Iterator[None]:
    """Of a second NodeSet, while the first works on."""
    extra = Workers.create(workers.slurm, "extra", "extra-")
    wait_for("the extra worker", lambda: workers.slurm.nodes().get("extra-0") == "idle", within=90)
    jobs = [workers.run_job(seconds, f"--nodelist={node}") for node in ("extra-0", *workers.names())]
    workers.slurm.kubectl("delete", NODESET, "extra", "--wait=false")
    wait_for("the drain", lambda: workers.slurm.nodes().get("extra-0") == "draining")
    yield
    for job in jobs:
        workers.unharmed(job)
    wait_for("the NodeSet to be gone", lambda: workers.slurm.find(NODESET, "extra") is None, within=120)
    assert not extra.pods()
    wait_for("no ghost", lambda: "extra-0" not in workers.slurm.nodes())


ACTS: tuple[Act, ...] = (scale, rolling_update, cordon, eviction, deletion)
FAULTS = (
    Fault("alone", 10, nothing),
    Fault("operator_killed", 25, operator_killed),
    Fault("slurmrestd_away", A_MINUTE + 25, slurmrestd_away),
)


@pytest.fixture
def workers(slurm: Slurm) -> Workers:
    return Workers(slurm)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_no_job_is_harmed(workers: Workers, act: Act, fault: Fault) -> None:
    course = act(workers, fault.seconds)
    next(course)
    fault.strike(workers)
    assert next(course, "over") == "over"
    wait_for("no drain to be left behind", lambda: set(states(workers)) == {"idle"}, within=120)
    wait_for("no cordon to be left behind", lambda: not any(is_cordoned(pod) for pod in workers.pods().values()))


def states(workers: Workers) -> list[str]:
    return list(workers.slurm.nodes().values())


def reached(workers: Workers, replicas: int) -> None:
    """That many workers, and no ghost of another in Slurm."""
    if replicas:
        workers.wait_until_idle(replicas, within=150)
    else:
        wait_for("no worker", lambda: not workers.pods() and not workers.slurm.nodes(), within=120)


def is_renewed(workers: Workers, before: dict[str, str]) -> bool:
    now = workers.uids()
    return set(now) == set(before) and not set(now.values()) & set(before.values())


def is_cordoned(pod: dict[str, dict[str, dict[str, str]]]) -> bool:
    return "nodeset.slinky.slurm.net/pod-cordon" in pod["metadata"].get("annotations", {})
