from datetime import UTC, datetime

import pytest

from kubeslurm.api import names
from kubeslurm.api.views import Pod
from kubeslurm.decide.config.delivery import (
    RECONFIGURE_DELAY,
    REFRESH_DELAY,
    WORKERS_DEADLINE,
    DeliveryStep,
    decide_delivery,
)
from kubeslurm.decide.config.facts import Configuration, Facts, Progress, Reading
from kubeslurm.decide.config.running import Running
from kubeslurm.slurm.conf import checksum
from tests.support.manifests import decoded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Configuration("new", {"slurm.conf": "ClusterName=c\n"})
BEFORE = Running(checksum=1, read_at=10)
READ = Running(checksum=checksum(NEW.slurm_conf) or 0, read_at=20)


def pod(delivered: str = "", running: str = "", *, started: bool = True) -> Pod:
    annotations = {names.CONFIG_DELIVERED: delivered, names.CONFIG_RUNNING: running}
    container = {"name": "slurmctld", "started": started, "state": {"running": {}}}
    tree = {
        "metadata": {"name": "c-controller-0", "namespace": "ns", "annotations": annotations},
        "status": {"containerStatuses": [container]},
    }
    found = decoded({"apiVersion": "v1", "kind": "Pod", **tree})
    assert isinstance(found, Pod)
    return found


def progress(refresh: float | None = None, reconfigure: float | None = None, **fields: object) -> Progress:
    given = {"digest": "new", "since_refresh": refresh, "since_reconfigure": reconfigure, "before": BEFORE} | fields
    return Progress(**given)  # type: ignore[arg-type]


def step(found: Pod | None, ran: str = "old", done: Progress | None = None, *, reachable: bool = True) -> DeliveryStep:
    facts = Facts(now=NOW, pod=found, running=ran, progress=done or Progress(), reachable=reachable)
    return decide_delivery(facts, NEW).step


REFRESHED = pod("new", "old")
NOT_READ = Reading(BEFORE)


@pytest.mark.parametrize(
    ("found", "ran", "expected"),
    [
        (None, "", DeliveryStep.AWAIT_POD),
        (pod(started=False), "", DeliveryStep.AWAIT_POD),
        (pod("new", "new"), "new", DeliveryStep.RUNNING),
        # A fresh pod that starts with the configuration that ran before has read it from its files.
        (pod(), "new", DeliveryStep.RECORD_RUNNING),
        # The very first start: a reconfigure also makes slurmctld save its whole state once.
        (pod(), "", DeliveryStep.REFRESH_FILES),
        (pod("old", "old"), "old", DeliveryStep.REFRESH_FILES),
    ],
)
@pytest.mark.parametrize("reachable", [True, False])
def test_the_records_on_the_pod_decide_first(
    found: Pod | None, ran: str, expected: DeliveryStep, reachable: bool
) -> None:
    assert step(found, ran, reachable=reachable) is expected


@pytest.mark.parametrize(
    ("done", "reachable", "expected"),
    [
        (progress(0.1), True, DeliveryStep.AWAIT_FILES),
        (progress(REFRESH_DELAY), False, DeliveryStep.AWAIT_SLURM),
        (progress(REFRESH_DELAY), True, DeliveryStep.RECONFIGURE),
        # A new operator process does not know when the files were refreshed; it goes on from there.
        (Progress(), True, DeliveryStep.RECONFIGURE),
        # What is remembered of another configuration does not count.
        (progress(0.1, digest="old"), True, DeliveryStep.RECONFIGURE),
        (progress(2.0, 0.5), True, DeliveryStep.AWAIT_RUNNING),
        (progress(2.0, 0.5, reading=NOT_READ), True, DeliveryStep.AWAIT_RUNNING),
        (progress(9.0, RECONFIGURE_DELAY, attempts=1, reading=NOT_READ), True, DeliveryStep.RECONFIGURE),
        # Every repetition restarts all workers, so they come ever later, and none once slurmctld has read the files.
        (progress(9.0, RECONFIGURE_DELAY, attempts=2), True, DeliveryStep.AWAIT_RUNNING),
        (progress(99.0, 90.0, attempts=1, since_read=1.0), True, DeliveryStep.AWAIT_RUNNING),
        (progress(99.0, 90.0, reading=Reading(READ, late_workers=("w",))), True, DeliveryStep.AWAIT_RUNNING),
        (progress(2.0, 0.5, reading=Reading(READ)), True, DeliveryStep.RECORD_RUNNING),
        # A release of Slurm that does not say what it has read.
        (progress(2.0, 0.5, reading=Reading(None, responding=True)), True, DeliveryStep.RECORD_RUNNING),
        (progress(2.0, 0.5, reading=Reading(None, responding=False)), True, DeliveryStep.AWAIT_RUNNING),
    ],
)
def test_refreshed_files_are_read_by_a_reconfigure(done: Progress, reachable: bool, expected: DeliveryStep) -> None:
    assert step(REFRESHED, "old", done, reachable=reachable) is expected


def test_late_workers_are_waited_for_and_then_named() -> None:
    late = Reading(READ, late_workers=("w",))
    assert step(REFRESHED, done=progress(9.0, 9.0, since_read=1.0, reading=late)) is DeliveryStep.AWAIT_RUNNING
    done = progress(20.0, 20.0, since_read=WORKERS_DEADLINE, reading=late)
    found = decide_delivery(Facts(now=NOW, pod=REFRESHED, progress=done, reachable=True), NEW)
    assert (found.step, found.late_workers) == (DeliveryStep.RECORD_RUNNING, ("w",))


def test_nothing_is_delivered_while_the_accepted_files_are_not_known() -> None:
    assert decide_delivery(Facts(now=NOW, pod=pod(), reachable=True), None).step is DeliveryStep.AWAIT_POD
