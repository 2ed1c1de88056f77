from datetime import UTC, datetime, timedelta
from typing import Any

from kubeslurm.cli import firstjob, releases, rivals

TAGS = dict.fromkeys(("slurmctld", "slurmd", "slurmrestd", "slurm-operator", "slurm-operator-webhook"), "abc")


def nodeset(wanted: int, idle: int, **conditions: str) -> dict[str, Any]:
    said = [{"type": kind, "status": "True", "message": message} for kind, message in conditions.items()]
    status = {"slurmIdle": idle, "conditions": said}
    return {"kind": "NodeSet", "metadata": {"name": "n"}, "spec": {"replicas": wanted}, "status": status}


def test_workers_that_slurm_can_use_are_counted() -> None:
    assert firstjob.counts([nodeset(2, 1), nodeset(3, 3)]) == (5, 4)


def test_what_is_wrong_is_told_before_what_is_awaited() -> None:
    objects = [nodeset(2, 0, Progressing="waiting for x"), nodeset(2, 0, Degraded="no such image")]
    assert firstjob.waiting_for(objects) == "NodeSet n: no such image"


def test_silence_is_told_too() -> None:
    assert "has not said anything" in firstjob.waiting_for([])


def test_values_of_the_user_win() -> None:
    release = releases.slurm(TAGS, {"nodesets": {"worker": {"replicas": 7}}, "partitions": {"all": {"enabled": False}}})
    assert release.values["nodesets"]["worker"]["replicas"] == 7
    assert release.values["partitions"]["all"]["enabled"] is False
    assert release.values["controller"]["slurmctld"]["image"] == {"repository": "localhost/slurmctld", "tag": "abc"}


def test_a_release_is_marked_by_chart_and_values() -> None:
    one, same, other = releases.slurm(TAGS, {}), releases.slurm(TAGS, {}), releases.slurm(TAGS, {"clusterName": "x"})
    assert one.mark == same.mark
    assert one.mark != other.mark


def test_published_images_are_used_where_none_were_built() -> None:
    assert "slurmctld" not in releases.slurm({}, {}).values["controller"]
    assert releases.operator({}).values == {}


def test_an_operator_is_a_rival_while_it_renews_its_lease() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    lease = {"spec": {"holderIdentity": "x", "renewTime": (now - timedelta(seconds=5)).isoformat()}}
    assert rivals.is_alive(lease, now)
    assert not rivals.is_alive(lease, now + timedelta(minutes=5))
    assert not rivals.is_alive({"spec": {"holderIdentity": "", "renewTime": now.isoformat()}}, now)
