from typing import Any

import msgspec
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
    """A cluster whose NodeSets still show the state before its restart.

    scontrol shows these lines, one after the other, and then the last again; srun fails while it has messages.
    """

    nodes: list[str]
    ran: list[str]
    replicas: int = 2
    failures: list[str] = msgspec.field(default_factory=list)

    def get_json(self, *args: str) -> dict[str, Any]:
        return {"items": [nodeset(self.replicas, self.replicas)]}

    def run(self, *args: str, stdin: str | None = None) -> str:
        if "scontrol" in args:
            shown = self.nodes.pop(0) if len(self.nodes) > 1 else self.nodes[0]
            if "error" in shown:
                raise LocalError(shown)
            return shown
        if "srun" not in args:
            return ""
        self.ran.append(" ".join(args))
        if self.failures:
            raise LocalError(self.failures.pop())
        return "worker-0\nworker-1\n"


def slurm_nodes(state: str, *started: int) -> str:
    return "".join(f"NodeName=worker-{n} State={state} SlurmdStartTime={at}\n" for n, at in enumerate(started))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_job, "PAUSE", 0.0)


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


def test_the_first_job_is_offered_only_when_all_workers_have_registered_since_the_start() -> None:
    shown = [
        "error: no such pod",
        slurm_nodes("IDLE", 10, 10),
        slurm_nodes("IDLE", 101, 10),
        slurm_nodes("DOWN", 101, 102),
        slurm_nodes("IDLE", 101, 102),
    ]
    access = StaleCluster((), (), shown, [])
    job = first_job.run(access, Step("wait"), since=100.0)
    assert job == first_job.FirstJob(2, "worker-0\nworker-1\n")
    assert shown == [slurm_nodes("IDLE", 101, 102)]
    assert len(access.ran) == 1


def test_on_a_cluster_that_ran_before_workers_need_not_register_again() -> None:
    access = StaleCluster((), (), [slurm_nodes("IDLE", 10, 10)], [])
    assert first_job.run(access, Step("wait"), since=0.0).output == "worker-0\nworker-1\n"


def test_without_workers_no_job_is_run_and_up_does_not_wait() -> None:
    access = StaleCluster((), (), ["No nodes in the system\n"], [], replicas=0)
    assert first_job.run(access, Step("wait"), since=0.0) == first_job.FirstJob(0, skipped="There are no workers")
    assert access.ran == []


def test_jobs_of_users_that_occupy_the_workers_are_no_failure() -> None:
    access = StaleCluster((), (), [slurm_nodes("ALLOCATED", 10, 10)], [], failures=["Requested nodes are busy"] * 3)
    job = first_job.run(access, Step("wait"), since=0.0)
    assert job == first_job.FirstJob(2, skipped="The workers are busy with other jobs")
    assert len(access.ran) == 3


def test_workers_that_slurm_still_cleans_up_are_waited_for() -> None:
    shown = [slurm_nodes("ALLOCATED+COMPLETING", 10, 10), slurm_nodes("IDLE+COMPLETING", 10, 10)]
    access = StaleCluster((), (), shown, [], failures=["Requested nodes are busy"])
    assert first_job.run(access, Step("wait"), since=0.0).output == "worker-0\nworker-1\n"


def test_a_first_job_that_fails_all_the_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_job, "TIMEOUT", -1.0)
    access = StaleCluster((), (), [slurm_nodes("IDLE", 10, 10)], [], failures=["srun: error: no route"])
    with pytest.raises(LocalError, match="The first job could not be run: srun: error: no route"):
        first_job.run(access, Step("wait"), since=0.0)


def test_workers_that_do_not_register_are_counted_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_job, "TIMEOUT", -1.0)
    access = StaleCluster((), (), [slurm_nodes("IDLE", 101, 10)], [])
    with pytest.raises(LocalError, match="1 of 2 workers have registered with slurmctld"):
        first_job.run(access, Step("wait"), since=100.0)
