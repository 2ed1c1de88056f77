"""Configuration: an accepted change runs without a restart, a rejected one never reaches slurmctld."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.nodeset import Workers
from tests.support.slurm import CONTROLLER, Slurm
from tests.support.waiting import wait_for


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


class Loaded(NamedTuple):
    """What shows with which configuration slurmctld runs, and since when."""

    boot: str
    max_job_count: str
    max_array_size: str


def loaded(slurm: Slurm) -> Loaded:
    """Empty texts while slurmctld does not answer."""
    return Loaded(slurm.config("BOOT_TIME"), slurm.config("MaxJobCount"), slurm.config("MaxArraySize"))


def test_a_good_change_becomes_live_without_a_restart(slurm: Slurm, extra: str) -> None:
    before = slurm.get("pod", slurm.controller)["status"]["containerStatuses"]
    change(slurm, f"{extra}\nMaxJobCount=4321")
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4321" or None)
    wait_for("the status to say so", slurm.config_is_live)
    after = slurm.get("pod", slurm.controller)["status"]["containerStatuses"]
    assert [each["containerID"] for each in before] == [each["containerID"] for each in after]
    slurm.wait_until_idle(2)


def test_a_running_job_survives_a_change(slurm: Slurm, extra: str) -> None:
    workers = Workers(slurm)
    job = workers.run_job(600, "--nodes=2")
    change(slurm, f"{extra}\nMaxJobCount=4322")
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4322")
    wait_for("the status to say so", slurm.config_is_live)
    workers.finish(job)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("NoSuchKey=1", "NoSuchKey"),
        ("PartitionName=broken Nodes=nosuchnode", "broken"),
        ("MaxJobCount=many", "MaxJobCount"),
        ("StateSaveLocation=/tmp", "spec.persistence"),
    ],
)
def test_a_bad_change_is_refused_with_file_and_line_and_changes_nothing(
    slurm: Slurm, extra: str, line: str, named: str
) -> None:
    before = loaded(slurm)
    delivered = slurm.get("configmap", "slurm-config")["data"]["slurm.conf"]
    change(slurm, f"{extra}\nMaxArraySize=777\n{line}")
    condition = wait_for("the refusal", lambda: refusal(slurm))
    assert "slurm.conf:" in condition["message"]
    assert named in condition["message"]
    assert slurm.get("configmap", "slurm-config")["data"]["slurm.conf"] == delivered
    assert loaded(slurm) == before


def test_slurmctld_restarted_while_a_bad_change_is_refused_loads_the_accepted_configuration(
    slurm: Slurm, extra: str
) -> None:
    change(slurm, f"{extra}\nMaxJobCount=4323")
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "4323")
    change(slurm, f"{extra}\nMaxJobCount=4324\nNoSuchKey=1")
    wait_for("the refusal", lambda: refusal(slurm))
    before = loaded(slurm)
    slurm.kubectl("delete", "pod", slurm.controller, "--wait=true")
    after = wait_for("another slurmctld", lambda: now if (now := loaded(slurm)).boot not in ("", before.boot) else None)
    assert after.max_job_count == "4323"
    assert refusal(slurm) is not None
    slurm.wait_until_idle(2)


def test_a_bad_file_in_a_referenced_configmap_is_refused_too(slurm: Slurm) -> None:
    files = slurm.get("configmap", "slurm-config-extra")["data"]
    try:
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": "- topology: x\n  tree: nonsense\n"}})
        condition = wait_for("the refusal", lambda: refusal(slurm))
        assert "topology" in condition["message"]
        assert slurm.hosts("--nodes=2") == sorted(slurm.nodes())
    finally:
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": None, **files}})
    wait_for("the refusal to end", lambda: refusal(slurm) is None)


def test_a_topology_that_is_taken_away_is_given_up(slurm: Slurm) -> None:
    def change_to(text: str | None, *, shows: bool) -> None:
        """Ends when slurmctld, restarted for it, shows or does not show the switch."""
        before = uid(slurm.get("pod", slurm.controller))
        slurm.patch("configmap", "slurm-config-extra", {"data": {"topology.yaml": text}})
        wait_for("another pod", lambda: (pod := slurm.find("pod", slurm.controller)) and uid(pod) != before)
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


def test_a_setting_that_needs_a_volume_of_slurmctld_passes_its_trial(slurm: Slurm, extra: str) -> None:
    spec = slurm.get(CONTROLLER, "slurm")["spec"]
    mounts = spec.get("slurmctld", {}).get("volumeMounts")
    volumes = ((spec.get("template") or {}).get("spec") or {}).get("volumes")

    def mount(volumes: object, mounts: object, text: str) -> None:
        template = {"spec": {"volumes": volumes}}
        change = {"template": template, "slurmctld": {"volumeMounts": mounts}, "extraConf": text}
        slurm.patch(CONTROLLER, "slurm", {"spec": change})

    volume, records = {"name": "records", "emptyDir": {}}, {"name": "records", "mountPath": "/records"}
    lines = "JobCompType=jobcomp/filetxt\nJobCompLoc=/records/jobs"
    try:
        mount([*(volumes or ()), volume], [*(mounts or ()), records], f"{extra}\n{lines}")
        wait_for("the change to be live", lambda: slurm.config("JobCompLoc") == "/records/jobs")
    finally:
        mount(volumes, mounts, extra)
    wait_for("the volume to go", lambda: slurm.config("JobCompLoc") not in ("", "/records/jobs"))
    slurm.wait_until_idle(2)
