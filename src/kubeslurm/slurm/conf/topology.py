"""Mistakes in topology.yaml."""

from collections.abc import Iterator
from typing import Any

import yaml

from kubeslurm.slurm import hostlist
from kubeslurm.slurm.conf.problem import Problem

_FILE = "topology.yaml"
_SHAPES = ("tree", "block", "flat", "ring", "torus3d")
_COMMON = frozenset({"topology", "cluster_default", "topology_param", *_SHAPES})


def lint_topology(text: str) -> list[Problem]:
    """Problems that make slurmctld refuse the file."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it cannot be read"
        return [Problem(_FILE, mark.line + 1 if mark else 0, f"not valid YAML: {reason}")]
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        return [Problem(_FILE, 0, "a list of topologies is expected, each with a name after `topology:`")]
    return list(_topologies(document))


def _topologies(document: list[dict[str, Any]]) -> Iterator[Problem]:
    names: set[str] = set()
    for item in document:
        name = str(item.get("topology", ""))
        if not name:
            yield Problem(_FILE, 0, "a topology has no name; add `topology: NAME`")
        if name in names:
            yield Problem(_FILE, 0, f"topology {name} is defined twice")
        names.add(name)
        for key in item.keys() - _COMMON:
            yield Problem(_FILE, 0, f"topology {name}: unknown key {key}")
        shapes = [shape for shape in _SHAPES if shape in item]
        if len(shapes) != 1:
            yield Problem(_FILE, 0, f"topology {name}: exactly one of {', '.join(_SHAPES)} is expected")
        for shape, check in (("tree", _tree), ("block", _block)):
            if isinstance(item.get(shape), dict):
                yield from check(name, item[shape])
            elif shape in item:
                yield Problem(_FILE, 0, f"topology {name}: {shape} has no contents")
    if sum(1 for item in document if item.get("cluster_default")) > 1:
        yield Problem(_FILE, 0, "more than one topology has cluster_default: true")


def _tree(name: str, tree: dict[str, Any]) -> Iterator[Problem]:
    switches = [switch for switch in tree.get("switches") or [] if isinstance(switch, dict)]
    known = {str(switch.get("switch")) for switch in switches}
    if not switches:
        yield Problem(_FILE, 0, f"topology {name}: a tree needs at least one switch")
    for switch in switches:
        if "switch" not in switch:
            yield Problem(_FILE, 0, f"topology {name}: a switch has no name; add `switch: NAME`")
        for child in _names(switch.get("children")):
            if child not in known:
                yield Problem(
                    _FILE, 0, f"topology {name}: switch {switch.get('switch')} names {child}, which is not there"
                )


def _block(name: str, block: dict[str, Any]) -> Iterator[Problem]:
    sizes = block.get("block_sizes")
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size > 0 for size in sizes):
        yield Problem(_FILE, 0, f"topology {name}: block_sizes must be a list of whole numbers")
    for item in block.get("blocks") or []:
        if not isinstance(item, dict) or "block" not in item:
            yield Problem(_FILE, 0, f"topology {name}: a block has no name; add `block: NAME`")


def _names(text: Any) -> list[str]:
    try:
        return hostlist.expand(str(text)) if text else []
    except ValueError:
        return []
