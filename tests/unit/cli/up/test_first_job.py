from typing import Any

import pytest

from kubeslurm.cli.up import first_job
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step


def nodeset(desired: int, idle: int, **messages: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", "message": message} for kind, message in messages.items()]
    status = {"slurmIdle": idle, "conditions": conditions}
    return {"kind": "NodeSet", "metadata": {"name": "n"}, "spec": {"replicas": desired}, "status": status}


class StaleCluster(Access, frozen=True):
    """A cluster whose NodeSet still shows the state before its restart; kubectl fails this often."""

    failures: list[str]

    def get_json(self, *args: str) -> dict[str, Any]:
        return {"items": [nodeset(2, 2)]}

    def run(self, *args: str, stdin: str | None = None) -> str:
        if self.failures:
            raise LocalError(self.failures.pop())
        return "worker-0\nworker-1\n"


def test_workers_that_slurm_can_use_are_counted() -> None:
    assert first_job.worker_counts([nodeset(2, 1), nodeset(3, 3)]) == (5, 4)


def test_only_login_pods_of_our_loginset_are_counted() -> None:
    def loginset(name: str, ready: int) -> dict[str, Any]:
        status = {"readyReplicas": ready}
        return {"kind": "LoginSet", "metadata": {"name": name}, "spec": {"replicas": 1}, "status": status}

    assert first_job.login_counts([loginset("slurm-login-main", 1), loginset("another", 0), nodeset(2, 2)]) == (1, 1)
    assert first_job.login_counts([]) == (0, 0)


def test_a_degraded_object_is_shown_before_a_progressing_one() -> None:
    objects = [nodeset(2, 0, Progressing="waiting for x"), nodeset(2, 0, Degraded="no such image")]
    assert first_job.waiting_for(objects) == "NodeSet n: no such image"


def test_objects_without_conditions_are_reported() -> None:
    assert "has not set any condition" in first_job.waiting_for([])


def test_the_first_job_is_retried_while_the_status_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_job, "PAUSE", 0.0)
    access = StaleCluster((), (), failures=["no such pod", "not running"])
    assert first_job.run(access, Step("wait")) == (2, "worker-0\nworker-1\n")
