from typing import Any

import msgspec
import pytest

from kubeslurm.api.views import Pod
from kubeslurm.decide.config.trial import explained, outcome


def pod(state: dict[str, Any] | None = None, phase: str = "Running") -> Pod:
    statuses = [{"name": "trial", "state": state}] if state else []
    return msgspec.convert({"metadata": {"name": "t"}, "status": {"phase": phase, "containerStatuses": statuses}}, Pod)


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message, "reason": reason}}


def test_no_pod_is_no_trial() -> None:
    assert outcome(None, "trial") is None


def test_a_waiting_or_running_container_is_a_trial_under_way() -> None:
    for each in (pod(), pod({"waiting": {"reason": "ContainerCreating"}}), pod({"running": {}})):
        trial = outcome(each, "trial")
        assert trial is not None
        assert trial.outcome == "running"


def test_the_exit_code_tells_whether_slurmctld_took_the_configuration() -> None:
    passed, refused = outcome(pod(ended(0)), "trial"), outcome(pod(ended(1, "fatal: no")), "trial")
    assert passed is not None
    assert passed.outcome == "passed"
    assert refused is not None
    assert (refused.outcome, refused.message) == ("failed", "fatal: no")


def test_a_killed_or_evicted_trial_says_nothing_about_the_configuration() -> None:
    for each in (pod(ended(137, reason="OOMKilled")), pod(phase="Failed")):
        trial = outcome(each, "trial")
        assert trial is not None
        assert trial.outcome == "inconclusive"


FILES = {
    "slurm.conf": """\
ClusterName=c
MaxJobCount=10
PartitionName=good Nodes=ALL
PartitionName=bad Nodes=nosuch
Foo=1
MaxJobCount=abc
""",
    "cgroup.conf": "CgroupPlugin=disabled\nBar=1\n",
}
STAMP = "[2026-11-15T23:04:48.246]"


@pytest.mark.parametrize(
    ("said", "explanation"),
    [
        ("error: _parse_next_key: Parsing error at unrecognized key: Foo", "slurm.conf:5: _parse_next_key: Parsing"),
        ("error: Parsing error at unrecognized key: Bar", "cgroup.conf:2: Parsing error"),
        ('error: Parse error in file /etc/slurm/slurm.conf line 38: "Foo=1"', 'slurm.conf:38: "Foo=1"'),
        ("error: MaxJobCount value (abc) is not a valid number", "slurm.conf:6: MaxJobCount value"),
        ("fatal: Invalid node names in partition bad", "slurm.conf:4: Invalid node names"),
        ("fatal: something without a place", "something without a place"),
    ],
)
def test_slurmctlds_words_become_file_line_and_reason(said: str, explanation: str) -> None:
    assert explained(f"{STAMP} {said}\n", FILES).startswith(explanation)


def test_what_only_follows_from_the_mistake_is_left_out() -> None:
    lines = ("error: Configured MailProg is invalid", "error: bad", "fatal: Unable to process configuration file")
    said = "\n".join(f"{STAMP} {line}" for line in lines)
    assert explained(said, {}) == "bad"


def test_a_failure_without_an_error_message_is_reported() -> None:
    assert "without an error message" in explained("", {})
