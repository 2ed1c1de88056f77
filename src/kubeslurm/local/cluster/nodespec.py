"""Parses the options `--nodes 3 --node 'gpu:count=2,label=tier=fast,resource=nvidia.com/gpu=8'`."""

import re

import msgspec

from kubeslurm.local.errors import LocalError

MAX_NODES = 200
HELP = "A group of nodes: NAME:count=N,label=K=V,taint=K=V:EFFECT,resource=DOMAIN/NAME=N. May be repeated."
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_LABEL = r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FIELDS = {  # pattern of a value, and its description
    "count": (r"(\d+)", "count is a whole number"),
    "label": (rf"({_LABEL})=((?:{_LABEL})?)", "a label is KEY=VALUE"),
    "taint": (
        rf"({_LABEL})(?:=(.*))?:({'|'.join(_EFFECTS)})",
        f"a taint is KEY=VALUE:EFFECT, with one of the effects {', '.join(_EFFECTS)}",
    ),
    "resource": (rf"(?=[^=]*/)({_LABEL})=(\d+)", "an extended resource is DOMAIN/NAME=WHOLE NUMBER"),
}
_NEVER = r"(?!)"
_KNOWN = "the fields are count=N, label=K=V, taint=K=V:EFFECT and resource=NAME=N"
_EXAMPLE = "Write it like 'gpu:count=2,label=tier=fast,taint=gpu=yes:NoSchedule,resource=nvidia.com/gpu=8'."


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node."""

    key: str
    value: str
    effect: str


class NodeSpec(msgspec.Struct, frozen=True):
    """One node of the cluster; its index decides its addresses."""

    name: str
    index: int = 0
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    resources: dict[str, str] = {}


def check_name(name: str, what: str) -> str:
    """Return the name if it can be used in host names, paths and object names."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"{name!r} is not a valid name for a {what}.",
            "Use at most 40 lower-case letters, digits and dashes; begin and end with a letter or digit.",
        )
    return name


def nodes(plain: int, specs: list[str]) -> list[NodeSpec]:
    """All nodes in order: node-1 to node-N, then the groups."""
    if plain < 0:
        raise LocalError(f"A cluster cannot have {plain} nodes.", "Give --nodes a number of 0 or more.")
    groups = [(plain, NodeSpec("node")), *(parse(spec) for spec in specs)]
    names = [kind.name for count, kind in groups if count]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise LocalError(f"Two groups of nodes are named {duplicate!r}.", "Give each --node a different name.")
    members = [(kind, number) for count, kind in groups for number in range(1, count + 1)]
    if len(members) > MAX_NODES:
        remedy = f"Ask for at most {MAX_NODES}, or use --fake-nodes."
        raise LocalError(f"{len(members)} nodes are more than one machine can run.", remedy)
    return [
        msgspec.structs.replace(kind, name=f"{kind.name}-{number}", index=index)
        for index, (kind, number) in enumerate(members, start=1)
    ]


def parse(spec: str) -> tuple[int, NodeSpec]:
    """Parse one `--node` value: how many nodes, and their spec."""
    prefix, _, rest = spec.partition(":")
    check_name(prefix, "node")
    count = 1
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    resources: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        field, _, value = item.partition("=")
        pattern, form = _FIELDS.get(field, (_NEVER, _KNOWN))
        found = re.fullmatch(pattern, value)
        if found is None:
            raise LocalError(f"{item!r} in --node {spec!r} is not valid: {form}.", _EXAMPLE)
        match field:
            case "count":
                count = int(value)
            case "label":
                labels[found[1]] = found[2]
            case "taint":
                taints.append(Taint(found[1], found[2] or "", found[3]))
            case "resource":
                resources[found[1]] = found[2]
    return count, NodeSpec(prefix, 0, labels, tuple(taints), resources)
