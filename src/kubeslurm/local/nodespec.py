"""What a user wants the nodes to be: `--nodes 3 --node 'gpu:count=2,label=tier=fast,resource=nvidia.com/gpu=8'`."""

import re

import msgspec

from kubeslurm.local.errors import LocalError

MAX_NODES = 200
HELP = "Nodes of another kind: NAME:count=N,label=K=V,taint=K=V:EFFECT,resource=DOMAIN/NAME=N. May be repeated."
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_LABEL = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EXAMPLE = "Write it like 'gpu:count=2,label=tier=fast,taint=gpu=yes:NoSchedule,resource=nvidia.com/gpu=8'."


class Taint(msgspec.Struct, frozen=True):
    """Keeps pods away that do not tolerate it."""

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
    """Names end up in host names, paths and object names."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"{name!r} is no name for a {what}.",
            "Use at most 40 lower-case letters, digits and dashes, with a letter or digit at both ends.",
        )
    return name


def nodes(plain: int, specs: list[str]) -> list[NodeSpec]:
    """All nodes, in order: node-1 to node-N, then the groups as given."""
    if plain < 0:
        raise LocalError(f"A cluster cannot have {plain} nodes.", "Give --nodes a number from 0 on.")
    groups = [(plain, NodeSpec("node")), *(parse(spec) for spec in specs)]
    names = [kind.name for count, kind in groups if count]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise LocalError(f"Two groups of nodes are named {twice!r}.", "Give each --node a name of its own.")
    members = [(kind, number) for count, kind in groups for number in range(1, count + 1)]
    if len(members) > MAX_NODES:
        remedy = f"Ask for at most {MAX_NODES}, or use --fake-nodes."
        raise LocalError(f"{len(members)} nodes are more than one machine can run.", remedy)
    return [
        msgspec.structs.replace(kind, name=f"{kind.name}-{number}", index=index)
        for index, (kind, number) in enumerate(members, start=1)
    ]


def parse(spec: str) -> tuple[int, NodeSpec]:
    """One `--node` value: how many nodes, and what each of them is."""
    prefix, _, rest = spec.partition(":")
    check_name(prefix, "node")
    count = 1
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    resources: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        field, _, value = item.partition("=")
        match field:
            case "count" if value.isdigit():
                count = int(value)
            case "label":
                labels.update([_pair(spec, item, value)])
            case "taint":
                taints.append(_taint(spec, item, value))
            case "resource":
                name, amount = _pair(spec, item, value)
                if "/" not in name or not amount.isdigit():
                    raise _bad(spec, item, "an extended resource is DOMAIN/NAME=WHOLE NUMBER")
                resources[name] = amount
            case _:
                raise _bad(spec, item, "known are count=N, label=K=V, taint=K=V:EFFECT and resource=NAME=N")
    return count, NodeSpec(prefix, 0, labels, tuple(taints), resources)


def _pair(spec: str, item: str, text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not _LABEL.fullmatch(key) or (value and not _LABEL.fullmatch(value)):
        raise _bad(spec, item, "it has to be KEY=VALUE")
    return key, value


def _taint(spec: str, item: str, text: str) -> Taint:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if effect not in _EFFECTS or not _LABEL.fullmatch(key):
        raise _bad(spec, item, f"a taint is KEY=VALUE:EFFECT, with one of the effects {', '.join(_EFFECTS)}")
    return Taint(key, value, effect)


def _bad(spec: str, item: str, why: str) -> LocalError:
    return LocalError(f"{item!r} in --node {spec!r} is not understood: {why}.", _EXAMPLE)
