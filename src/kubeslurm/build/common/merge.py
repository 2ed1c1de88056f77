"""User templates merged over ours, by the rules of a Kubernetes strategic merge patch.

Nothing here mutates its input. The order of merged lists is the one `kubectl` and the API server produce (what the user
added comes first), because a pod template that differs only in order would still restart its pods.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kubeslurm.api.meta import Tree

CONTAINER_LISTS: Mapping[str, str] = {
    "env": "name",
    "ports": "containerPort",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
}
POD_LISTS: Mapping[str, str] = {
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumes": "name",
}
# Items of these lists are unions: a volume with two sources or a variable with value and valueFrom is refused.
UNION_LISTS = frozenset({"env", "resourceClaims", "volumes"})
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
HANDLERS = frozenset({"exec", "grpc", "httpGet", "sleep", "tcpSocket"})
# An explicit false or 0 in one of these is an instruction; any other falsy value means "not set".
EXPLICIT = frozenset(
    {
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "hostNetwork",
        "privileged",
        "runAsUser",
        "terminationGracePeriodSeconds",
    }
)


class DuplicatePortError(ValueError):
    """A port of the user's Service template collides with the one the operator adds."""


def merge_container(base: Tree, user: Tree) -> Tree:
    """The user's container over ours: args are appended, a probe or hook of theirs brings its own handler."""
    patch = pruned(user)
    ours = dict(base)
    for probe in PROBES:
        # A handler of theirs replaces ours whole; thresholds alone leave our handler in place.
        if isinstance(ours.get(probe), dict) and HANDLERS & patch.get(probe, {}).keys():
            ours[probe] = {field: value for field, value in ours[probe].items() if field not in HANDLERS}
    if isinstance(ours.get("lifecycle"), dict) and isinstance(patch.get("lifecycle"), dict):
        ours["lifecycle"] = _lifecycle(ours["lifecycle"], patch["lifecycle"])
    merged = _merge(ours, patch, CONTAINER_LISTS)
    if "args" in patch:
        merged["args"] = [*(base.get("args") or ()), *patch["args"]]
    return merged


def merge_pod_spec(base: Tree, user: Tree) -> Tree:
    """The user's pod spec over ours; their containers are added after ours, never merged into them by name."""
    patch = pruned(user)
    merged = _merge(base, patch, POD_LISTS)
    for field in ("containers", "initContainers"):
        if field in base or field in patch:
            merged[field] = [*(base.get(field) or ()), *(patch.get(field) or ())]
    return merged


def merge_metadata(*layers: Tree | None) -> Tree:
    """Labels and annotations of all layers; a later layer wins. Other metadata is not taken over."""
    return {field: _union(layer.get(field) for layer in layers if layer) for field in ("labels", "annotations")}


def merge_service_spec(user: Tree | None, port: Tree, selector: Mapping[str, str]) -> Tree:
    """The user's Service spec as it stands, plus our port and our selector; externalIPs are left out."""
    spec = {field: value for field, value in (user or {}).items() if field != "externalIPs" and value is not None}
    ports = [*(spec.get("ports") or ()), port]
    _refuse_duplicates(ports)
    return {**spec, "ports": ports, "selector": {**(spec.get("selector") or {}), **selector}}


def pruned(tree: Tree) -> Tree:
    """The tree without values that mean "not set"; lists, and what is in them, stay as they are."""
    kept: Tree = {}
    for field, value in tree.items():
        if isinstance(value, dict):
            if inner := pruned(value):
                kept[field] = inner
        elif isinstance(value, list) or value or _is_instruction(field, value):
            kept[field] = value
    return kept


def _is_instruction(field: str, value: Any) -> bool:
    return field in EXPLICIT and isinstance(value, (bool, int))


def _merge(base: Tree, patch: Tree, lists: Mapping[str, str]) -> Tree:
    merged = dict(base)
    for field, value in patch.items():
        current = base.get(field)
        if value is None:
            merged.pop(field, None)
        elif isinstance(current, dict) and isinstance(value, dict):
            merged[field] = _merge(current, value, {})
        elif field in lists and isinstance(current, list) and isinstance(value, list):
            merged[field] = _merge_list(current, value, lists[field], union=field in UNION_LISTS)
        else:
            merged[field] = value
    return merged


def _merge_list(base: list[Tree], patch: list[Tree], key: str, *, union: bool) -> list[Tree]:
    merged = list(base)
    for item in patch:
        at = _position(merged, key, item)
        if at is None:
            merged.append(item)
        else:
            ours = _without_others(merged[at], item, (merged[at].keys() | item.keys()) - {key}) if union else merged[at]
            merged[at] = _merge(ours, item, {})
    theirs = [item for item in merged if _position(patch, key, item) is not None]
    theirs.sort(key=lambda item: _position(patch, key, item) or 0)
    return _interleave([item for item in merged if _position(patch, key, item) is None], theirs, base, key)


def _interleave(ours: list[Tree], theirs: list[Tree], order: list[Tree], key: str) -> list[Tree]:
    """Both lists keep their own order; an item of ours goes first only where it already stood before theirs."""
    result: list[Tree] = []
    waiting = list(ours)
    for item in theirs:
        there = _position(order, key, item)
        while waiting and there is not None and (_position(order, key, waiting[0]) or 0) < there:
            result.append(waiting.pop(0))
        result.append(item)
    return result + waiting


def _position(items: list[Tree], key: str, sought: Tree) -> int | None:
    if key not in sought:
        return None
    return next((at for at, item in enumerate(items) if item.get(key) == sought[key]), None)


def _without_others(ours: Tree, theirs: Tree, union: Collection[str]) -> Tree:
    """Our item without the members of the union that theirs does not name, if theirs names any."""
    chosen = [field for field in union if theirs.get(field) is not None]
    if not chosen:
        return ours
    return {field: value for field, value in ours.items() if field not in union or field in chosen}


def _lifecycle(ours: Tree, theirs: Tree) -> Tree:
    return {
        hook: _without_others(handler, theirs[hook], HANDLERS) if hook in HOOKS and hook in theirs else handler
        for hook, handler in ours.items()
    }


def _union(maps: Iterable[Mapping[str, str] | None]) -> dict[str, str]:
    return {key: value for layer in maps if layer for key, value in layer.items()}


def _refuse_duplicates(ports: list[Tree]) -> None:
    for field in ("name", "port"):
        values = [port.get(field) for port in ports]
        for value in values:
            if len(ports) > 1 and values.count(value) > 1:
                raise DuplicatePortError(
                    f"two ports of the Service have the {field} {value!r}: "
                    "give the one in spec.service.spec.ports another name and number"
                )
