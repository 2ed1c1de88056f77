"""Which workers of an old revision are replaced now."""

import re
from collections.abc import Collection, Mapping

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.cordon import Cause
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.worker import Worker, by_dispensability

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


def outdated(nodeset: NodeSet, worker: Worker, facts: Facts) -> bool:
    """Whether the pod was made from another template, or started with other files, than a pod made today."""
    hashes = facts.startup_hashes
    if facts.key_waits:
        hashes = {name: value for name, value in hashes.items() if name != names.SLURM_KEY_HASH}
    return worker.revision != facts.revision or is_stale(nodeset, worker, hashes)


def is_stale(nodeset: NodeSet, worker: Worker, hashes: Mapping[str, str]) -> bool:
    """Whether the pod has other hashes than `hashes` (annotation -> hash); one that is not known is not compared.

    Pods of another operator are not replaced because of a hash.
    """
    have = worker.pod.metadata.annotations
    if names.RESTART_HASH in have:
        known = [name for name in (names.SLURM_KEY_HASH, names.RESTART_HASH) if name in hashes and name in have]
        if any(have[name] != hashes[name] for name in known):
            return True
    if not (nodeset.spec.ssh and nodeset.spec.ssh.enabled):
        return False
    if not any(owner.kind == CONTROLLER.kind for owner in worker.pod.metadata.ownerReferences):
        return False
    # Without a hash the Secret with sssd.conf is missing: wait for it.
    ssh = [name for name in (names.SSHD_CONF_HASH, names.SSSD_CONF_HASH) if name in hashes]
    return any(have.get(name) != hashes[name] for name in ssh)


def replaced(nodeset: NodeSet, facts: Facts, total: int, leaving: Collection[str]) -> list[Worker]:
    """Old workers to drain and replace, within the budget; those in `leaving` go anyway, for another cause.

    A worker that is already being drained for the update stays chosen and counts as unavailable from the start, so that
    each node is drained once and never more than the budget allows is out of service.
    """
    if nodeset.spec.paused or nodeset.spec.update_type != "RollingUpdate":
        return []
    old, current = _split(nodeset, facts, leaving)
    begun = [worker for worker in old if worker.cause == Cause.UPDATE]
    rest = [worker for worker in old if worker.cause != Cause.UPDATE]
    # What certainly serves nobody costs nothing to replace; it only takes up budget because it is away. Not being ready
    # is no such certainty: whole clusters look so while a kubelet or the API server does not answer.
    unused = [worker for worker in rest if _serves_nobody(worker, facts)]
    unready = by_dispensability(worker for worker in rest if not worker.ready and not _serves_nobody(worker, facts))
    ready = by_dispensability(worker for worker in rest if worker.ready)
    serving = len(ready) + sum(1 for worker in current if worker.available(facts.now, nodeset.spec.minReadySeconds))
    strategy = nodeset.spec.updateStrategy
    allowed = max_unavailable(strategy.max_unavailable if strategy else "25%", total)
    room = max(allowed - max(total - serving, 0), 0)
    going = _bounded(begun, allowed)
    # Replacing one that is not ready takes nothing out of service, so a set that is broken as a whole can be repaired.
    return [*going, *unused, *unready[: max(allowed - len(going), 0)], *ready[:room]]


def _split(nodeset: NodeSet, facts: Facts, leaving: Collection[str]) -> tuple[list[Worker], list[Worker]]:
    """The workers that do not leave for another cause: old ones, unless they are terminating, and current ones."""
    old: list[Worker] = []
    current: list[Worker] = []
    for worker in facts.workers:
        if worker.name in leaving:
            continue
        if not outdated(nodeset, worker, facts):
            current.append(worker)
        elif not worker.terminating:
            old.append(worker)
    return old, current


def _bounded(begun: list[Worker], allowed: int) -> list[Worker]:
    """What is being drained, but no more that could serve than the budget allows: it may have been lowered since."""
    able = by_dispensability(worker for worker in begun if worker.ready)
    return [worker for worker in begun if not worker.ready] + able[:allowed]


def _serves_nobody(worker: Worker, facts: Facts) -> bool:
    if worker.ready:
        return False
    if worker.never_started or worker.finished:
        return True
    node = worker.node
    return facts.slurm_known and (node is None or (not node.busy and (node.down or node.not_responding)))
