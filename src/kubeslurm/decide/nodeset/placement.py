"""Which Kubernetes nodes get a worker when the NodeSet follows the nodes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubeslurm.api import slots, tolerations, views
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.decide.nodeset.slurm.drain import tolerates
from kubeslurm.decide.nodeset.worker import Worker, by_dispensability

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Fit:
    """The requirements of a NodeSet's pods, asked of one Kubernetes node after the other."""

    def __init__(self, nodeset: NodeSet) -> None:
        spec: Tree = (nodeset.spec.template and nodeset.spec.template.spec) or {}
        affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
        self._selector: Mapping[str, str] = spec.get("nodeSelector") or {}
        self._terms: Sequence[Tree] = affinity.get("nodeSelectorTerms") or ()
        self._tolerations = tolerations.of_workers(nodeset)

    def may_start(self, host: views.Node) -> bool:
        """Whether a new worker belongs there."""
        return self._selected(host) and self._tolerated(host, ("NoSchedule", "NoExecute"))

    def may_stay(self, host: views.Node) -> bool:
        """Whether a worker that is there may go on: a NoSchedule taint keeps newcomers away, no more."""
        return self._selected(host) and self._tolerated(host, ("NoExecute",))

    def _selected(self, host: views.Node) -> bool:
        labels = host.metadata.labels
        if any(labels.get(key) != value for key, value in self._selector.items()):
            return False
        return not self._terms or any(_matches(term, host) for term in self._terms)

    def _tolerated(self, host: views.Node, effects: Sequence[str]) -> bool:
        return all(
            taint.effect not in effects or any(tolerates(each, taint) for each in self._tolerations)
            for taint in host.spec.taints
        )


def misplaced(workers: Iterable[Worker], hosts: Iterable[views.Node], fit: Fit) -> list[Worker]:
    """Daemon workers whose node does not want them, has another one, or has another name for them by now."""
    by_name = {host.name: host for host in hosts}
    by_host: dict[str, list[Worker]] = {}
    gone: list[Worker] = []
    for each in workers:
        if each.mode != "DaemonSet" or each.terminating or each.finished:
            continue
        host = by_name.get(each.pod.target_node)
        if host is None or not fit.may_stay(host) or each.pod.spec.hostname != slots.daemon_hostname(host):
            gone.append(each)
        else:
            by_host.setdefault(host.name, []).append(each)
    for same_node in by_host.values():
        gone += by_dispensability(same_node)[:-1]  # the last one is the most worth keeping
    return gone


def vacant(workers: Iterable[Worker], hosts: Iterable[views.Node], fit: Fit) -> list[views.Node]:
    """Nodes that should have a worker and have none; one that is on its way out still holds the place."""
    served = {each.pod.target_node for each in workers if each.mode == "DaemonSet"}
    return [host for host in hosts if host.name not in served and not host.deleting and fit.may_start(host)]


def pins(nodeset: NodeSet, hosts: Iterable[views.Node], fit: Fit) -> dict[int, str]:
    """Ordinal -> the Kubernetes node where it ran before, as long as that node still fits."""
    if not nodeset.spec.pinToNode:
        return {}
    fitting = {host.name for host in hosts if fit.may_start(host)}
    return {int(ordinal): node for ordinal, node in (nodeset.status.ordinalToNode or {}).items() if node in fitting}


def _matches(term: Tree, host: views.Node) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # Kubernetes: an empty term selects nothing
    return all(_test(each, host.metadata.labels.get(each["key"])) for each in expressions) and all(
        _test(each, host.name) for each in fields if each.get("key") == "metadata.name"
    )


def _test(requirement: Mapping[str, Any], value: str | None) -> bool:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as sign:
            return _compare(sign, value, values)
    return False


def _compare(sign: str, value: str | None, values: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if sign == "Gt" else number < bound
