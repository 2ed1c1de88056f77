"""A change that is taken back before it was rolled out costs nothing."""

from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers
from tests.support.slurm import NODESET, Slurm
from tests.support.waiting import wait_for


@pytest.fixture
def workers(slurm: Slurm) -> Iterator[Workers]:
    """Two workers that take no change for now."""
    found = Workers(slurm)
    spec = slurm.get(NODESET, found.name)["spec"]
    before = {key: spec.get(key) for key in ("paused", "extraConf", "revisionHistoryLimit")}
    found.change({"paused": True, "revisionHistoryLimit": 1})
    yield found
    found.change(before)


def test_no_worker_is_replaced_when_the_old_template_is_wanted_again(workers: Workers) -> None:
    before = workers.uids()
    old = workers.slurm.get(NODESET, workers.name)["spec"].get("extraConf", "")
    for weight in (97, 98, 99):
        revise(workers, f"Weight={weight}")
    assert workers.status().get("updatedReplicas", 0) == 0
    # What the pods have, what is wanted, and one more of what was wanted in between.
    wait_for("the history to be as long as it may be", lambda: len(history(workers)) == 3)
    workers.change({"extraConf": old})
    wait_for("the old revision to be the newest", lambda: workers.status().get("updatedReplicas") == 2)
    workers.change({"paused": False})
    workers.wait_until_idle(2)
    assert workers.uids() == before


def revise(workers: Workers, extra_conf: str) -> None:
    seen = workers.status()["nodeSetHash"]
    workers.change({"extraConf": extra_conf})
    wait_for("the new revision", lambda: workers.status()["nodeSetHash"] != seen)


def history(workers: Workers) -> list[str]:
    selector = f"app.kubernetes.io/instance={workers.name}"
    return [each["metadata"]["name"] for each in workers.slurm.items("controllerrevisions", selector=selector)]
