"""The nodes of the new cluster as slurmctld sees them: objects may still show the state before a restart."""

import re

import msgspec

from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.releases import SLURM, SLURM_NAMESPACE

USABLE = {"IDLE", "MIXED", "ALLOCATED"}
BUSY = {"MIXED", "ALLOCATED"}
UNUSABLE = {"DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING"}


class SlurmNode(msgspec.Struct, frozen=True):
    """One node: its state with all flags, and when its slurmd has started (0 if that is unknown)."""

    states: frozenset[str]
    started: int

    def usable(self, since: float) -> bool:
        """Whether the node takes jobs, and its slurmd has started and registered after this moment.

        A node that slurmctld knows from before a restart looks idle until its slurmd registers. Slurm then sets it DOWN
        as rebooted for a moment, and ends a job that was placed there.
        """
        return bool(self.states & USABLE) and not self.states & UNUSABLE and self.started >= int(since)

    @property
    def busy(self) -> bool:
        return bool(self.states & BUSY)


def read(access: Access) -> list[SlurmNode]:
    """Ask slurmctld."""
    return parse(run(access, "env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "nodes", "--oneliner"))


def parse(text: str) -> list[SlurmNode]:
    """Nodes from the output of scontrol, with times in seconds since 1970."""
    return [_parse_line(line) for line in text.splitlines() if line.startswith("NodeName=")]


def run(access: Access, *command: str) -> str:
    """Run a command in the container of slurmctld."""
    target = (f"--namespace={SLURM_NAMESPACE}", f"statefulset/{SLURM}-controller", "--container=slurmctld")
    return access.run("exec", *target, "--", "timeout", "60", *command)


def _parse_line(line: str) -> SlurmNode:
    fields = dict(re.findall(r"\b(State|SlurmdStartTime)=(\S+)", line)[::-1])  # of two, the first counts
    state, started = fields.get("State", ""), fields.get("SlurmdStartTime", "")
    # `IDLE*+DYNAMIC_NORM`: the asterisk marks a node that does not answer.
    states = {*state.replace("*", "+NOT_RESPONDING").split("+")}
    return SlurmNode(frozenset(states), int(started) if started.isdigit() else 0)
