from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubeslurm.cli.up import first_job, other_operators, releases
from kubeslurm.cli.up.helm import Access
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Step

TAGS = dict.fromkeys(("slurmctld", "slurmd", "slurmrestd", "slurm-operator", "slurm-operator-webhook"), "abc")


def nodeset(wanted: int, idle: int, **conditions: str) -> dict[str, Any]:
    said = [{"type": kind, "status": "True", "message": message} for kind, message in conditions.items()]
    status = {"slurmIdle": idle, "conditions": said}
    return {"kind": "NodeSet", "metadata": {"name": "n"}, "spec": {"replicas": wanted}, "status": status}


def test_workers_that_slurm_can_use_are_counted() -> None:
    assert first_job.counts([nodeset(2, 1), nodeset(3, 3)]) == (5, 4)


def test_what_is_wrong_is_told_before_what_is_awaited() -> None:
    objects = [nodeset(2, 0, Progressing="waiting for x"), nodeset(2, 0, Degraded="no such image")]
    assert first_job.waiting_for(objects) == "NodeSet n: no such image"


class Forgetful(Access, frozen=True):
    """A cluster whose objects still speak of the time before it was switched off."""

    failures: list[str]

    def tree(self, *args: str) -> dict[str, Any]:
        return {"items": [nodeset(2, 2)]}

    def run(self, *args: str, stdin: str | None = None) -> str:
        if self.failures:
            raise LocalError(self.failures.pop())
        return "worker-0\nworker-1\n"


def test_the_first_job_is_tried_again_while_old_words_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_job, "PAUSE", 0.0)
    access = Forgetful((), (), failures=["no such pod", "not running"])
    assert first_job.run(access, Step("wait")) == (2, "worker-0\nworker-1\n")


def test_silence_is_told_too() -> None:
    assert "has not said anything" in first_job.waiting_for([])


def test_values_of_the_user_win() -> None:
    release = releases.slurm(TAGS, {"nodesets": {"worker": {"replicas": 7}}, "partitions": {"all": {"enabled": False}}})
    assert release.values["nodesets"]["worker"]["replicas"] == 7
    assert release.values["partitions"]["all"]["enabled"] is False
    assert release.values["controller"]["slurmctld"]["image"] == {"repository": "localhost/slurmctld", "tag": "abc"}


def test_the_operator_and_its_admission_server_share_a_node_of_this_machine() -> None:
    values = releases.operator(TAGS).values
    for part in ("operator", "webhook"):
        (wish,) = values[part]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert wish["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
        assert values[part]["image"]["tag"] == "abc"


def test_a_release_is_marked_by_chart_and_values() -> None:
    one, same, other = releases.slurm(TAGS, {}), releases.slurm(TAGS, {}), releases.slurm(TAGS, {"clusterName": "x"})
    assert one.mark == same.mark
    assert one.mark != other.mark


def test_published_images_are_used_where_none_were_built() -> None:
    assert "image" not in releases.slurm({}, {}).values["controller"]["slurmctld"]
    assert releases.operator({}).values == {}


def test_published_images_may_come_from_another_registry() -> None:
    release = releases.slurm({}, {}, "images.example.org/hpc")
    assert release.values["accounting"]["mariadb"]["image"] == {"repository": "images.example.org/hpc/mariadb"}
    assert "isolation" not in release.values
    webhook = releases.operator({}, "images.example.org/hpc").values["webhook"]["image"]
    assert webhook == {"repository": "images.example.org/hpc/slurm-operator-webhook"}


def test_a_trial_has_records_and_a_login_that_is_not_exposed_unless_wanted() -> None:
    open_, closed = releases.trial(2, "ssh-ed25519 A", exposed=True), releases.trial(2, "", exposed=False)
    assert open_["accounting"] == {"enabled": True, "mariadb": {"enabled": True}}
    assert open_["loginsets"]["main"]["rootSshAuthorizedKeys"] == "ssh-ed25519 A"
    assert open_["loginsets"]["main"]["service"]["spec"]["type"] == "NodePort"
    assert closed["loginsets"]["main"]["service"]["spec"]["type"] == "ClusterIP"


def test_login_pods_of_the_trial_are_counted_and_others_are_not() -> None:
    def loginset(name: str, ready: int) -> dict[str, Any]:
        status = {"readyReplicas": ready}
        return {"kind": "LoginSet", "metadata": {"name": name}, "spec": {"replicas": 1}, "status": status}

    assert first_job.logins([loginset("slurm-login-main", 1), loginset("another", 0), nodeset(2, 2)]) == (1, 1)
    assert first_job.logins([]) == (0, 0)


def test_an_operator_is_a_rival_while_it_renews_its_lease() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    lease = {"spec": {"holderIdentity": "x", "renewTime": (now - timedelta(seconds=5)).isoformat()}}
    assert other_operators.is_alive(lease, now)
    assert not other_operators.is_alive(lease, now + timedelta(minutes=5))
    assert not other_operators.is_alive({"spec": {"holderIdentity": "", "renewTime": now.isoformat()}}, now)
