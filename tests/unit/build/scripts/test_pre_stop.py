"""What a worker does before its slurmd is stopped."""

import subprocess
from pathlib import Path

import pytest

from kubeslurm.build.worker.pod import PRE_STOP

STATES = {
    "idle": ("State=IDLE ", "slurm-operator: Pod is terminating"),
    "drained by us": (
        "State=IDLE+DRAIN Reason=slurm-operator: x [slurm@2026-11-15T10:00:00]",
        "slurm-operator: Pod is terminating",
    ),
    "drained by us over an admin's reason": (
        "State=DOWN+DRAIN Reason=slurm-operator: x (was: bad PSU) [slurm@2026-11-15T10:00:00] Comment={}",
        "slurm-operator: x (was: bad PSU)",
    ),
    "set down by an admin": ("State=DOWN+DYNAMIC_NORM Reason=bad PSU [root@2026-11-15T10:00:00]", "bad PSU"),
    "drained by an admin": (
        "State=MIXED+DRAIN+DYNAMIC_NORM Reason=bad GPU in slot 3 [root@2026-11-15T10:00:00] Comment={}",
        "bad GPU in slot 3",
    ),
}


@pytest.mark.parametrize(("shown", "reason"), STATES.values(), ids=STATES)
def test_a_terminating_worker_keeps_the_reason_of_an_admins_drain(tmp_path: Path, shown: str, reason: str) -> None:
    stub = tmp_path / "scontrol"
    called = tmp_path / "called"
    stub.write_text(f'#!/bin/sh\ncase "$*" in *show*) echo "NodeName=x {shown}" ;; *) echo "$*" > {called} ;; esac\n')
    stub.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    subprocess.run(["/bin/sh", "-c", PRE_STOP], check=True, env={"PATH": path, "SLURMD_NODENAME": "x"})
    assert called.read_text().strip() == f"update nodename=x state=down reason={reason}"
