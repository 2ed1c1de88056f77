"""The names that follow from a worker's place."""

from typing import Any

import pytest

from kubeslurm.api import slots
from kubeslurm.api.slinky.nodeset import WorkerTemplate
from kubeslurm.api.slots import Slot
from tests.support.workers import nodeset


def template(**spec: Any) -> WorkerTemplate:
    return WorkerTemplate(spec=spec)


NAMES = {
    "plain": ({}, 3, "gpu-3", "gpu-3"),
    "padded": ({"ordinalPadding": 3}, 7, "gpu-007", "gpu-007"),
    "with a prefix": ({"template": template(hostname="a100-")}, 3, "gpu-3", "a100-3"),
    "prefix and padding": ({"template": template(hostname="n"), "ordinalPadding": 4}, 12, "gpu-0012", "n0012"),
}


@pytest.mark.parametrize(("spec", "ordinal", "pod", "hostname"), NAMES.values(), ids=NAMES)
def test_names_follow_from_the_ordinal(spec: dict[str, Any], ordinal: int, pod: str, hostname: str) -> None:
    given = nodeset(**spec)
    slot = slots.for_ordinal(given, ordinal)
    assert (slots.pod_name(given, slot), slot.hostname, slots.slurm_name(given, slot)) == (
        pod,
        hostname,
        hostname,
    )


def test_claims_are_named_after_the_ordinal_or_the_node() -> None:
    assert slots.claim_name(nodeset(ordinalPadding=2), "data", Slot(ordinal=3, hostname="x")) == "data-gpu-03"
    assert slots.claim_name(nodeset(), "data", Slot(node="n", hostname="n")) == "data-gpu-n"
