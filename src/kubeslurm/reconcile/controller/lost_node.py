"""Looks whether the node of slurmctld is gone, and for how long."""

from collections.abc import Callable

import msgspec

from kubeslurm.api.kinds import NODE
from kubeslurm.decide.config.facts import Facts
from kubeslurm.decide.node_loss import MISSING_SECONDS
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.reconcile.controller.memory import Memory

# How often a node that stays away is asked for when its time is over and the pod still counts as ready.
LATE_PAUSE = 10.0


async def with_missing_node(kube: Kube, facts: Facts, memory: Memory, clock: Callable[[], float]) -> Facts:
    """The facts, and for how long the API server has said that the node of slurmctld does not exist."""
    pod = facts.pod
    if pod is None or not pod.spec.nodeName or facts.node is not None:
        memory.missing_node = None
        return facts
    # The store may be behind; before a pod is given up the server itself has to say that there is no such node.
    if (node := await kube.get(NODE, Key("", pod.spec.nodeName))) is not None:
        memory.missing_node = None
        return msgspec.structs.replace(facts, node=node)
    now = clock()
    if memory.missing_node is None or memory.missing_node[0] != pod.metadata.uid:
        memory.missing_node = (pod.metadata.uid, now)
    return msgspec.structs.replace(facts, node_missing_for=now - memory.missing_node[1])


def next_look(missing_for: float) -> float:
    """Seconds until the node is asked for again."""
    return MISSING_SECONDS - missing_for if missing_for < MISSING_SECONDS else LATE_PAUSE
