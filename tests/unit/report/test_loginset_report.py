"""What a LoginSet says about pods that are to go."""

from datetime import UTC, datetime

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Deployment, Pod
from kubeslurm.report.loginset import Facts, status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOGINSET = msgspec.convert(
    {
        "metadata": {"name": "l", "namespace": "ns"},
        "spec": {"controllerRef": {"name": "c"}, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}},
    },
    LoginSet,
)


def said(ready: int, **leaving: str) -> dict[str, Tree]:
    """The conditions, by type, with these pods and the ends of their wait."""
    pods = ({"metadata": {"name": name, "deletionTimestamp": at}} for name, at in leaving.items())
    facts = Facts(
        now=NOW,
        deployment=msgspec.convert({"metadata": {"name": "l"}, "status": {"readyReplicas": ready}}, Deployment),
        pods=tuple(msgspec.convert(pod, Pod) for pod in pods),
    )
    return {each["type"]: each for each in status(LOGINSET, facts, None)["conditions"]}


def test_a_pod_that_waits_for_its_users_is_named_with_the_end_of_the_wait() -> None:
    found = said(1, old="2026-01-02T03:04:05Z")
    assert found["Progressing"]["reason"] == "Draining"
    assert "logged out of old, at the latest until 2026-01-02T03:04:05Z" in found["Progressing"]["message"]
    assert found["Ready"]["status"] == "True"


def test_a_pod_whose_wait_is_over_is_not_waited_for() -> None:
    assert said(1, old="2025-12-31T00:00:00Z")["Progressing"]["reason"] == "Stable"


def test_users_learn_first_that_no_pod_is_ready() -> None:
    assert said(0, old="2026-01-02T03:04:05Z")["Progressing"]["reason"] == "Starting"
