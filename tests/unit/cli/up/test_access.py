from pathlib import Path

import pytest

from kubeslurm.cli.up import access as module
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError


def test_a_kubectl_that_does_not_end_is_stopped_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE", 0.2)
    with pytest.raises(LocalError, match=r"kubectl 600 was stopped.*kubectl get nodes"):
        Access(("sleep",), ()).run("600")


def test_a_failed_kubectl_is_reported_by_its_own_words(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(LocalError, match=r"failed: .*No such file"):
        Access(("ls",), ()).run(str(missing))
