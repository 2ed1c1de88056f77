"""Requests that are held back in a namespace that is being deleted."""

import pytest

from kubeslurm.kube.errors import TERMINATING_PAUSE, Terminating
from kubeslurm.kube.transport.http import Request
from kubeslurm.kube.transport.terminating import TerminatingNamespaces
from tests.support.clock import HandClock


def request(verb: str, path: str) -> Request:
    return Request(verb=verb, kind="ConfigMap", path=f"/api/v1/{path}")


CREATE = request("create", "namespaces/going/configmaps")


def test_after_one_refusal_nothing_is_created_or_applied_for_a_while() -> None:
    clock = HandClock()
    terminating = TerminatingNamespaces(clock)
    terminating.check(CREATE)
    terminating.add(CREATE)
    clock.now += 4
    with pytest.raises(Terminating, match="going") as refusal:
        terminating.check(CREATE)
    assert refusal.value.after == TERMINATING_PAUSE - 4
    with pytest.raises(Terminating):  # even if the object may exist
        terminating.check(request("apply", "namespaces/going/configmaps/a"))
    clock.now += TERMINATING_PAUSE
    terminating.check(CREATE)


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("create", "namespaces/other/configmaps"),
        ("create", "namespaces"),
        ("apply", "namespaces/going/nodesets/a/status"),
        ("patch", "namespaces/going/pods/a"),
        ("delete", "namespaces/going/pods/a"),
        ("create", "nodes"),
    ],
)
def test_all_other_requests_pass(verb: str, path: str) -> None:
    terminating = TerminatingNamespaces(HandClock())
    terminating.add(CREATE)
    terminating.add(request(verb, path) if "other" not in path else CREATE)
    terminating.check(request(verb, path))
