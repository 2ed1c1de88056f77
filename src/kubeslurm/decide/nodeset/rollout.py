"""Which workers of an old revision are replaced now."""

import re
from collections.abc import Collection

from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.facts import Seen, Worker
from kubeslurm.decide.nodeset.order import by_dispensability

UPDATE = "update"
_PERCENT = re.compile(r"^([0-9]+)%$")


def max_unavailable(value: int | str, total: int) -> int:
    """How many of `total` may be away at a time: at least one, percentages rounded up."""
    percent = _PERCENT.match(str(value))
    if percent:
        return max(-(-int(percent[1]) * total // 100), 1)
    try:
        return max(int(value), 1)
    except ValueError:
        return 1


def outdated(worker: Worker, seen: Seen) -> bool:
    """Whether the pod was made from another template than the present one."""
    return worker.revision != seen.revision or worker.name in seen.stale


def replaced(nodeset: NodeSet, seen: Seen, total: int, leaving: Collection[str]) -> list[Worker]:
    """Old workers to drain and replace, within the budget; those in `leaving` go anyway, for another cause.

    A worker that is already being drained for the update stays chosen and counts as unavailable from the start, so that
    each node is drained once and never more than the budget allows is out of service.
    """
    if nodeset.spec.paused or nodeset.spec.update_type != "RollingUpdate":
        return []
    staying = [worker for worker in seen.workers if worker.name not in leaving]
    old = [worker for worker in staying if outdated(worker, seen) and not worker.terminating]
    begun = [worker for worker in old if worker.cause == UPDATE]
    rest = [worker for worker in old if worker.cause != UPDATE]
    # What certainly serves nobody costs nothing to replace; it only takes up budget because it is away. Not being ready
    # is no such certainty: a kubelet or an API server that hiccups makes whole clusters look so.
    sick = [worker for worker in rest if _serves_nobody(worker, seen)]
    shaky = by_dispensability(worker for worker in rest if not worker.ready and not _serves_nobody(worker, seen))
    healthy = by_dispensability(worker for worker in rest if worker.ready)
    serving = len(healthy) + sum(
        1
        for worker in staying
        if not outdated(worker, seen) and worker.available(seen.now, nodeset.spec.minReadySeconds)
    )
    strategy = nodeset.spec.updateStrategy
    allowed = max_unavailable(strategy.max_unavailable if strategy else "25%", total)
    room = max(allowed - max(total - serving, 0), 0)
    going = _bounded(begun, allowed)
    # Replacing one that is not ready takes nothing out of service, so a set that is broken as a whole can be mended.
    return [*going, *sick, *shaky[: max(allowed - len(going), 0)], *healthy[:room]]


def _bounded(begun: list[Worker], allowed: int) -> list[Worker]:
    """What is being drained, but no more that could serve than the budget allows: it may have been lowered since."""
    able = by_dispensability(worker for worker in begun if worker.ready)
    return [worker for worker in begun if not worker.ready] + able[:allowed]


def _serves_nobody(worker: Worker, seen: Seen) -> bool:
    if worker.ready:
        return False
    if worker.never_started or worker.finished:
        return True
    node = worker.node
    return seen.known and (node is None or (not node.busy and (node.down or node.not_responding)))
