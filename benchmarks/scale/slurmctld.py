"""Runs Slurm commands in the slurmctld container as root; sdiag counts the operator's RPCs separately, by user."""

import re
import subprocess
from collections.abc import Collection

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.tokens import OWN_USER

_BY_USER = re.compile(rf"^\s+{OWN_USER}\s*\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)


class Slurmctld:
    """A running slurmctld. Commands enter its namespaces, which is much cheaper than kubectl exec."""

    def __init__(self, pid: int) -> None:
        self._enter = ["nsenter", f"--target={pid}", "--mount", "--net", "--ipc", "--uts", "--pid", "--"]

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [*self._enter, *command], capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, f"{' '.join(command)[:200]} failed: {done.stderr.strip()}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """The state of every Slurm node by name."""
        text = self.run("sinfo", "--noheader", "--Node", "--format=%N %T")
        return dict(line.split(None, 1) for line in text.splitlines() if " " in line)

    def operator_rpcs(self) -> int:
        """The number of RPCs that slurmctld has served for the operator."""
        found = _BY_USER.search(self.run("sdiag"))
        return int(found[1]) if found else 0

    def register(self, names: Collection[str]) -> None:
        """Create Slurm nodes without a slurmd; they are idle at once."""
        for chunk in hostlist.chunks(names):
            self.run(
                "scontrol", "create", f"NodeName={hostlist.compress(chunk)}", "NodeAddr=127.0.0.1", "State=EXTERNAL",
                "CPUs=64", "RealMemory=200000",
            )  # fmt: skip

    def drain(self, names: Collection[str], reason: str) -> None:
        self.run("scontrol", "update", f"nodename={hostlist.compress(names)}", "state=drain", f"reason={reason}")

    def resume(self, names: Collection[str]) -> None:
        self.run("scontrol", "update", f"nodename={hostlist.compress(names)}", "state=resume")
