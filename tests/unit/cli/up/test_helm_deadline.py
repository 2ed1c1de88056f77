from pathlib import Path

import pytest

from kubeslurm.cli.up import helm
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError


@pytest.mark.parametrize("at_the_end", ["exit 1", "sleep 600"], ids=["gives up", "must be killed"])
def test_a_helm_that_does_not_end_is_stopped_and_what_it_said_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_the_end: str
) -> None:
    file = tmp_path / "helm"
    file.write_text(f"#!/bin/sh\ntrap '{at_the_end}' TERM\necho waiting for the hook >&2\nsleep 600 & wait\n")
    file.chmod(0o755)
    monkeypatch.setattr(helm, "_program", lambda: str(file))
    monkeypatch.setattr(helm, "DEADLINE", 0.5)
    monkeypatch.setattr(helm, "TERMINATION_GRACE", 0.5)
    with pytest.raises(LocalError, match=r"helm uninstall slurm .* was stopped after 0\.5 s: waiting for the hook"):
        helm.uninstall(Access(("kubectl",), ()), "slurm", "slurm")
