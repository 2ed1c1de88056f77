"""Golden files: what was agreed on, as text that people read.

Set KUBESLURM_UPDATE_GOLDEN=1 to write them anew, then read the difference.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import yaml

from kubeslurm.api.meta import Tree


class Dumper(yaml.SafeDumper):
    """Writes text of several lines as such, and nothing by reference."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(str, _text)


def readable(trees: Iterable[Tree | None]) -> str:
    """Objects as YAML, without those that are not made."""
    text: str = yaml.dump_all([tree for tree in trees if tree], Dumper=Dumper, sort_keys=True, width=120)
    return text


def compare(path: Path, text: str) -> None:
    """Fails where the text is not what was agreed on."""
    if os.environ.get("KUBESLURM_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
