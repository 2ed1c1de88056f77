"""Operators that `kubeslurm up` and `down` find on somebody's cluster."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.other_operators import is_active, refuse
from kubeslurm.local.errors import LocalError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = ("slinky", "slurm-operator")


def cluster(folder: Path, *namespaces: str) -> Access:
    """A cluster with an active operator in each of these namespaces."""
    spec = {"holderIdentity": "x", "renewTime": datetime.now(UTC).isoformat()}
    leases = [{"metadata": {"namespace": each}, "spec": spec} for each in namespaces]
    (folder / "leases").write_text(json.dumps({"items": leases}))
    return Access(("sh", "-c", f"cat {folder}/leases"), ())


def test_an_operator_that_we_installed_is_no_other(tmp_path: Path) -> None:
    refuse(cluster(tmp_path, "slinky"), {PLACE: "digest"})
    refuse(cluster(tmp_path), {})


@pytest.mark.parametrize("digests", [{}, {PLACE: "digest"}])
def test_an_active_operator_elsewhere_is_refused(tmp_path: Path, digests: dict[tuple[str, str], str]) -> None:
    with pytest.raises(LocalError, match="active on this cluster, in the namespace other"):
        refuse(cluster(tmp_path, "other"), digests)


@pytest.mark.parametrize("active", [("slinky",), ()])
def test_a_release_that_we_did_not_make_is_left_alone_even_when_it_sleeps(
    tmp_path: Path, active: tuple[str, ...]
) -> None:
    with pytest.raises(LocalError, match=r"was not installed by `kubeslurm up`.*do not uninstall it"):
        refuse(cluster(tmp_path, *active), {PLACE: ""})


def test_an_operator_is_active_while_it_renews_its_lease() -> None:
    lease = {"spec": {"holderIdentity": "x", "renewTime": (NOW - timedelta(seconds=5)).isoformat()}}
    assert is_active(lease, NOW)
    assert not is_active(lease, NOW + timedelta(minutes=5))


def test_a_released_lease_has_no_active_operator() -> None:
    assert not is_active({"spec": {"holderIdentity": "", "renewTime": NOW.isoformat()}}, NOW)
