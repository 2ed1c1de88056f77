from datetime import UTC, datetime, timedelta

from kubeslurm.cli.up.other_operators import is_active

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_operator_is_active_while_it_renews_its_lease() -> None:
    lease = {"spec": {"holderIdentity": "x", "renewTime": (NOW - timedelta(seconds=5)).isoformat()}}
    assert is_active(lease, NOW)
    assert not is_active(lease, NOW + timedelta(minutes=5))


def test_a_released_lease_has_no_active_operator() -> None:
    assert not is_active({"spec": {"holderIdentity": "", "renewTime": NOW.isoformat()}}, NOW)
