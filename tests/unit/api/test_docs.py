"""The page about the API names every field."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeslurm.api.kinds import SLURM_KINDS, Kind

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", SLURM_KINDS, ids=str)
def test_every_field_is_on_the_page(kind: Kind[Any]) -> None:
    section = PAGE.split(f"\n## {kind.kind}\n", 1)[1].split("\n## ", 1)[0]
    obj = {field.name: field.type for field in msgspec.structs.fields(kind.type)}
    common = {"conditions", "observedGeneration"}
    fields = {field.name for part in ("spec", "status") for field in msgspec.structs.fields(struct(obj[part]))}
    assert {name for name in fields - common if name not in section} == set()


def struct(annotated: Any) -> Any:
    """The struct under its description."""
    return getattr(annotated, "__origin__", annotated)
