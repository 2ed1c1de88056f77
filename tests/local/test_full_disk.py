"""A full disk: `up` says so in one sentence, leaves nothing half-made behind, and works when there is space again."""

import os
import subprocess
import sys
from pathlib import Path

# In a mount namespace of its own, so that the small disk is never seen outside.
SCRIPT = """
mount -t tmpfs -o size=200m tmpfs "$XDG_STATE_HOME"
"$0" local up --name full --nodes 0; echo "small: $?"
mount -o remount,size=2g "$XDG_STATE_HOME"
"$0" local up --name full --nodes 0; echo "large: $?"
"$0" local kubectl --name full get --raw /readyz; echo
dd if=/dev/zero of="$XDG_STATE_HOME/fill" bs=1M status=none
"$0" up --name full; echo "filled: $?"
rm "$XDG_STATE_HOME/fill"
"$0" local down --name full --purge
"""


def test_up_names_a_full_disk_and_works_when_there_is_space_again(tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("kubeslurm"))
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", SCRIPT, program],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    lines = done.stdout.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert [line for line in lines if line.startswith(("small", "large", "filled"))] == [
        "small: 1",
        "large: 0",
        "filled: 1",
    ], done.stdout
    assert "ok" in lines
    assert len(errors) == 2, done.stdout
    assert all(f"free below {tmp_path}" in error and "Free some space" in error for error in errors), done.stdout
    assert "Traceback" not in done.stdout
    assert done.stdout.endswith("The cluster 'full' is down.\n")
    assert list(tmp_path.iterdir()) == []
