import pytest

from kubeslurm.cli.up import access
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError


def test_a_kubectl_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "DEADLINE", 0.05)
    with pytest.raises(LocalError, match=r"kubectl 60 has had no answer for 0 seconds\. Check that the cluster works"):
        Access(("sleep",), ()).run("60")


def test_the_error_message_of_kubectl_is_kept() -> None:
    with pytest.raises(LocalError, match="kubectl -c echo no such pod >&2; exit 1 failed: no such pod"):
        Access(("sh",), ()).run("-c", "echo no such pod >&2; exit 1")
