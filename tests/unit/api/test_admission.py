"""The manifests that only admission can refuse."""

from typing import TypeVar

import msgspec
import pytest

from kubeslurm.api.kinds import Kind, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.engine.key import Key
from kubeslurm.webhooks.lookup import facts_for
from kubeslurm.webhooks.rules import judge
from tests.conformance.manifests import Case, cases

T = TypeVar("T", bound=Resource)


class Existing:
    """A cluster with these objects."""

    def __init__(self, objects: list[Tree]) -> None:
        self._objects = objects

    async def get(self, kind: Kind[T], key: Key) -> T | None:
        return next((each for each in await self.list(kind, key.namespace) if each.key == key), None)

    async def list(self, kind: Kind[T], namespace: str = "") -> list[T]:
        found = [msgspec.convert(each, kind.type) for each in self._objects if kind_of(each) == kind]
        return [each for each in found if each.namespace == namespace]


@pytest.mark.parametrize("case", cases("invalid-webhook"), ids=lambda case: case.name)
async def test_admission_refuses_and_says_what_to_do(case: Case) -> None:
    *others, manifest = case.objects("slurm")
    obj = msgspec.convert(manifest, kind_of(manifest).type)
    verdict = judge(obj, None, await facts_for(obj, Existing(others)))
    assert case.refusal in "; ".join(verdict.errors)


@pytest.mark.parametrize("case", [each for each in cases("update") if not each.refusal], ids=lambda case: case.name)
async def test_admission_lets_good_changes_pass(case: Case) -> None:
    before, after = (msgspec.convert(each, kind_of(each).type) for each in case.objects("slurm"))
    assert judge(after, before, await facts_for(before, Existing([]))).errors == ()
