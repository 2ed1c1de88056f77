"""A kind of our own group goes the same way as one of Slinky's."""

from typing import Annotated

import kubernetes_validate  # type: ignore[import-untyped]
import msgspec
import pytest

from kubeslurm.api import kinds
from kubeslurm.api.crds import crd, crds
from kubeslurm.api.kinds import kind_of
from kubeslurm.api.meta import Conditions, Int32, Int64, OwnedMeta, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, READY, Definition, SlurmResource
from kubeslurm.api.schema import schema_of
from kubeslurm.build.common.metadata import owner_reference
from kubeslurm.control import rights


class SampleSpec(Wire, frozen=True, kw_only=True):
    """What is wanted."""

    size: Annotated[Int32, defaulted("How many.", minimum=0)] = 1


class SampleStatus(Wire, frozen=True, kw_only=True):
    """What is known."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for.")] = 0
    conditions: Conditions = ()


class Sample(SlurmResource, frozen=True, kw_only=True):
    """A kind that only this test has."""

    definition = Definition(short_names=("sm",), columns=(READY, AGE))

    spec: Annotated[SampleSpec, doc("")] = SampleSpec()
    status: Annotated[SampleStatus, doc("")] = SampleStatus()


SAMPLE = kinds.own("samples", Sample)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if `api/kinds.py` had the line."""
    monkeypatch.setattr(kinds, "ALL", (*kinds.ALL, SAMPLE))
    monkeypatch.setattr(kinds, "SLURM_KINDS", (*kinds.SLURM_KINDS, SAMPLE))


def test_the_api_server_serves_it_under_our_group() -> None:
    assert SAMPLE.path("ns", "a") == "/apis/kubeslurm.dev/v1alpha1/namespaces/ns/samples/a"


def test_its_schema_is_made_from_the_type() -> None:
    size = schema_of(Sample)["properties"]["spec"]["properties"]["size"]
    assert size == {"type": "integer", "format": "int32", "description": "How many.", "minimum": 0, "default": 1}


def test_its_definition_has_our_group_and_version() -> None:
    made = crd(SAMPLE)
    kubernetes_validate.validate(made, "1.37", strict=True)
    assert made["metadata"]["name"] == "samples.kubeslurm.dev"
    assert made["spec"]["group"] == "kubeslurm.dev"
    assert made["spec"]["names"]["shortNames"] == ["sm"]
    assert [version["name"] for version in made["spec"]["versions"]] == ["v1alpha1"]


def test_rights_name_our_group() -> None:
    assert {rule.group for rule in rights.serve(SAMPLE)} == {"kubeslurm.dev"}


@pytest.mark.usefixtures("listed")
def test_its_objects_tell_their_kind() -> None:
    assert kind_of({"apiVersion": "kubeslurm.dev/v1alpha1", "kind": "Sample"}) is SAMPLE


@pytest.mark.usefixtures("listed")
def test_it_owns_its_children_by_our_group() -> None:
    sample = msgspec.convert({"metadata": {"name": "a", "namespace": "ns", "uid": "u"}}, Sample)
    assert owner_reference(sample) == {
        "apiVersion": "kubeslurm.dev/v1alpha1",
        "kind": "Sample",
        "name": "a",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_kind_that_is_not_listed_is_not_known() -> None:
    with pytest.raises(KeyError, match="Sample"):
        owner_reference(Sample(metadata=OwnedMeta(name="a")))


def test_every_kind_that_we_define_is_of_one_of_two_groups() -> None:
    assert {made["spec"]["group"] for made in crds().values()} <= {"slinky.slurm.net", "kubeslurm.dev"}
