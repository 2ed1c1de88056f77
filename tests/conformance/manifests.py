"""Reads the conformance manifests."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubeslurm.api.meta import Tree

ROOT = Path(__file__).parent / "api"


class Case(msgspec.Struct, frozen=True):
    """One file: its objects, and a piece of the message they are refused with; nothing means accepted."""

    name: str
    refusal: str
    text: str

    def objects(self, namespace: str) -> list[Tree]:
        """The documents of the file, placed in a namespace."""
        documents: list[Any] = list(yaml.safe_load_all(self.text.replace("${namespace}", namespace)))
        return [each | {"metadata": each["metadata"] | {"namespace": namespace}} for each in documents]


def cases(folder: str) -> list[Case]:
    """All files of a folder."""
    return [_case(path) for path in sorted((ROOT / folder).glob("*.yaml"))]


def _case(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    verdict = text.split("\n", 1)[0].removeprefix("# ")
    return Case(path.stem, verdict.removeprefix("rejected: ") if verdict.startswith("rejected: ") else "", text)


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`; lists must agree in full."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)
