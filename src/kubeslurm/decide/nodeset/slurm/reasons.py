"""Whose reason a Slurm node carries: the operator's, slurmctld's or an admin's."""

import re

from kubeslurm.slurm.rest.models import Node

# Reasons that slurmctld writes by itself, as a whole: an admin may well write "Not responding to IPMI".
SLURM_REASONS = ("Not responding", "Node unexpectedly rebooted")
# How they begin when slurmctld refuses what a slurmd registers with: whole sentences, because an admin may well write
# "gres/gpu 3 dead" or "Low on coolant".
REFUSALS = re.compile(
    r"gres/\S+ count reported lower than configured"
    r"|Low socket\*core(\*thread)? count|Low RealMemory \(reported:|Low (CPUs|TmpDisk)(,|$)"
    r"|Invalid gres|Failed to set topology"
)
NO_REASON = "no reason given"
_WAS = " (was: "


def is_own(node: Node) -> bool:
    """Whether the node's reason was written by us or by slurmctld itself."""
    return node.ours or node.reason in SLURM_REASONS


def is_refused(node: Node) -> bool:
    """Whether slurmctld itself keeps the node out of service because its slurmd has less than the record promises.

    Where an admin's reason stands, the node stays out of service until the admin resumes it, whatever it has.
    """
    return node.invalid and (is_own(node) or not node.reason or bool(REFUSALS.match(node.reason)))


def foreign_reason(node: Node) -> str:
    """Why an admin or a health check gives the node no jobs; empty when the reason is ours or slurmctld's."""
    if is_refused(node) or not (node.drain or node.down):
        return ""
    if is_own(node):
        return reason_before(node)
    return node.reason or (NO_REASON if node.drain else "")


def keeping(reason: str, before: str) -> str:
    """Our reason, with an admin's inside it: it is put back when ours is over."""
    return f"{reason}{_WAS}{before})" if before else reason


def reason_before(node: Node) -> str:
    """The admin's reason that is kept inside ours; empty when there is none."""
    _, was, before = node.reason.partition(_WAS)
    return before.removesuffix(")") if was and node.ours else ""
