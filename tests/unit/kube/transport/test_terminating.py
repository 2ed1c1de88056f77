"""What is still asked of the server in a namespace that is being deleted."""

import pytest

from kubeslurm.kube.errors import TERMINATING_PAUSE, Terminating
from kubeslurm.kube.transport.terminating import Closing
from kubeslurm.kube.transport.wire import Request
from tests.support.clock import HandClock


def request(verb: str, path: str) -> Request:
    return Request(verb=verb, kind="ConfigMap", path=f"/api/v1/{path}")


CREATE = request("create", "namespaces/going/configmaps")


def test_after_one_refusal_nothing_new_is_tried_for_a_while() -> None:
    clock = HandClock()
    closing = Closing(clock)
    closing.admit(CREATE)
    closing.note(CREATE)
    clock.now += 4
    with pytest.raises(Terminating, match="going") as refusal:
        closing.admit(CREATE)
    assert refusal.value.after == TERMINATING_PAUSE - 4
    with pytest.raises(Terminating):  # even of an object that may be there
        closing.admit(request("apply", "namespaces/going/configmaps/a"))
    clock.now += TERMINATING_PAUSE
    closing.admit(CREATE)


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
def test_everything_else_passes(verb: str, path: str) -> None:
    closing = Closing(HandClock())
    closing.note(CREATE)
    closing.note(request(verb, path) if "other" not in path else CREATE)
    closing.admit(request(verb, path))
