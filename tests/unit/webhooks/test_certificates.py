"""Certificates that we make: who trusts them, for which names, until when."""

import datetime as dt

import pytest
from cryptography import x509

from kubeslurm.webhooks.certificates import LIFE, Bundle, due, make, renewal, service_names

NOW = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
NAMES = service_names("slurm-operator-webhook", "slinky")
FIRST = make(NAMES, NOW)


def test_the_certificate_is_good_for_the_service_and_signed_by_its_authority() -> None:
    store = x509.verification.Store(x509.load_pem_x509_certificates(FIRST.ca))
    cert = x509.load_pem_x509_certificate(FIRST.cert)
    verifier = x509.verification.PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName(NAMES[0]))
    assert verifier.verify(cert, [])


def test_a_fresh_certificate_is_not_due() -> None:
    assert not due(FIRST, NAMES, NOW)


def test_renewal_comes_at_two_thirds_of_life() -> None:
    assert not due(FIRST, NAMES, NOW + LIFE * 0.65)
    assert due(FIRST, NAMES, NOW + LIFE * 0.67)
    assert NOW < renewal(FIRST) < NOW + LIFE


@pytest.mark.parametrize(
    "bundle",
    [
        Bundle(b"", b"", b""),
        Bundle(FIRST.ca, b"", FIRST.key),
        Bundle(FIRST.ca, FIRST.cert, b"rubbish"),
        Bundle(b"rubbish", FIRST.cert, FIRST.key),
        Bundle(make(NAMES, NOW).ca, FIRST.cert, FIRST.key),
    ],
    ids=["empty", "no certificate", "bad key", "bad authority", "another authority"],
)
def test_a_bundle_that_does_not_hold_together_is_due(bundle: Bundle) -> None:
    assert due(bundle, NAMES, NOW)


def test_a_certificate_for_other_names_is_due() -> None:
    assert due(FIRST, service_names("other", "slinky"), NOW)


def test_rotation_keeps_the_old_authority_while_it_is_valid() -> None:
    later = NOW + LIFE * 0.7
    second = make(NAMES, later, trusted=FIRST.ca)
    third = make(NAMES, later + LIFE * 0.7, trusted=second.ca)
    assert FIRST.ca in second.ca
    assert second.ca.startswith(b"-----BEGIN")
    assert len(x509.load_pem_x509_certificates(second.ca)) == 2
    assert FIRST.ca not in third.ca
    assert not due(second, NAMES, later)
