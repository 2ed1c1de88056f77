"""Configuration: what is good becomes live within seconds, what is bad never gets near slurmctld."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

CONTROLLER = "controllers.slinky.slurm.net"


@pytest.fixture
def extra(slurm: Slurm) -> Iterator[str]:
    """The present extraConf, put back at the end."""
    text: str = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    yield text
    slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": text}})
    wait_for("the first configuration to be live again", slurm.config_is_live)


def change(slurm: Slurm, text: str) -> None:
    slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": text}})


def refusal(slurm: Slurm) -> dict[str, Any] | None:
    condition = slurm.conditions(CONTROLLER).get("ConfigAccepted")
    return condition if condition and condition["status"] == "False" else None


def test_a_good_change_becomes_live_without_a_restart(slurm: Slurm, extra: str) -> None:
    before = slurm.get("pod", "slurm-controller-0")["status"]["containerStatuses"]
    change(slurm, f"{extra}\nMaxJobCount=4321")
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4321" or None)
    wait_for("the status to say so", slurm.config_is_live)
    after = slurm.get("pod", "slurm-controller-0")["status"]["containerStatuses"]
    assert [each["containerID"] for each in before] == [each["containerID"] for each in after]
    slurm.wait_until_idle(2)


def test_a_running_job_survives_a_change(slurm: Slurm, extra: str) -> None:
    job = slurm.submit("sleep 20")
    slurm.wait_for_job(job, "RUNNING")
    change(slurm, f"{extra}\nMaxJobCount=4322")
    wait_for("the change to be live", slurm.config_is_live)
    slurm.wait_for_job(job, "COMPLETED")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("NoSuchKey=1", "NoSuchKey"),
        ("PartitionName=broken Nodes=nosuchnode", "broken"),
        ("MaxJobCount=many", "MaxJobCount"),
    ],
)
def test_a_bad_change_is_refused_with_file_and_line_and_changes_nothing(
    slurm: Slurm, extra: str, line: str, words: str
) -> None:
    count = wait_for("slurmctld to answer", lambda: slurm.config("MaxJobCount"))
    change(slurm, f"{extra}\n{line}")
    condition = wait_for("the refusal", lambda: refusal(slurm))
    assert "slurm.conf:" in condition["message"]
    assert words in condition["message"]
    assert wait_for("slurmctld to answer", lambda: slurm.config("MaxJobCount")) == count
    assert line not in slurm.get("configmap", "slurm-config")["data"]["slurm.conf"]


def test_slurmctld_restarted_while_a_bad_change_waits_comes_up_with_the_last_good_one(slurm: Slurm, extra: str) -> None:
    change(slurm, f"{extra}\nNoSuchKey=1")
    wait_for("the refusal", lambda: refusal(slurm))
    slurm.kubectl("delete", "pod", "slurm-controller-0", "--wait=true")
    slurm.wait_until_idle(2)


def test_a_bad_file_in_a_referenced_configmap_is_refused_too(slurm: Slurm) -> None:
    files = slurm.get("configmap", "slurm-config-extra")["data"]
    try:
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": "- topology: x\n  tree: nonsense\n"}})
        condition = wait_for("the refusal", lambda: refusal(slurm))
        assert "topology" in condition["message"]
        assert slurm.run("srun", "hostname")
    finally:
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": None, **files}})
    wait_for("the refusal to end", lambda: refusal(slurm) is None)


def test_a_topology_that_is_taken_away_is_given_up(slurm: Slurm) -> None:
    def change_to(text: str | None, *, shows: bool) -> None:
        """Ends when slurmctld, restarted for it, shows or does not show the switch."""
        before = uid(slurm.get("pod", "slurm-controller-0"))
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": text}})
        wait_for("another pod", lambda: (pod := slurm.find("pod", "slurm-controller-0")) and uid(pod) != before)
        wait_for("slurmctld to answer", lambda: slurm.config("ClusterName") != "")
        assert ("SwitchName=row" in slurm.run("scontrol", "show", "topology")) is shows

    try:
        change_to("- topology: rows\n  cluster_default: true\n  tree:\n    switches:\n    - switch: row\n", shows=True)
    finally:
        change_to(None, shows=False)
    slurm.wait_until_idle(2)


def uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def test_an_edit_of_the_mounted_configmap_is_repaired(slurm: Slurm) -> None:
    good = slurm.get("configmap", "slurm-config")["data"]["slurm.conf"]
    slurm.patch("configmap", "slurm-config", {"data": {"slurm.conf": good + "NoSuchKey=1\n"}})
    wait_for("the repair", lambda: slurm.get("configmap", "slurm-config")["data"]["slurm.conf"] == good)
    wait_for("the repair in the pod", lambda: slurm.run("cat", "/etc/slurm/slurm.conf") == good)
