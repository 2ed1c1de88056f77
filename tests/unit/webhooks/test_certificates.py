"""Issued certificates: who trusts them, for which names, until when."""

import datetime as dt

import pytest
from cryptography import x509

from kubeslurm.webhooks.certificates import LIFETIME, Bundle, issue, needs_renewal, renewal_time, service_names

NOW = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
NAMES = service_names("slurm-operator-webhook", "slinky")
FIRST = issue(NAMES, NOW)


def test_the_certificate_is_valid_for_the_service_and_signed_by_its_authority() -> None:
    store = x509.verification.Store(x509.load_pem_x509_certificates(FIRST.ca))
    cert = x509.load_pem_x509_certificate(FIRST.cert)
    verifier = x509.verification.PolicyBuilder().store(store).time(NOW).build_server_verifier(x509.DNSName(NAMES[0]))
    assert verifier.verify(cert, [])


def test_a_new_certificate_needs_no_renewal() -> None:
    assert not needs_renewal(FIRST, NAMES, NOW)


def test_renewal_is_due_at_two_thirds_of_the_lifetime() -> None:
    assert not needs_renewal(FIRST, NAMES, NOW + LIFETIME * 0.65)
    assert needs_renewal(FIRST, NAMES, NOW + LIFETIME * 0.67)
    assert NOW < renewal_time(FIRST) < NOW + LIFETIME


@pytest.mark.parametrize(
    "bundle",
    [
        Bundle(b"", b"", b""),
        Bundle(FIRST.ca, b"", FIRST.key),
        Bundle(FIRST.ca, FIRST.cert, b"rubbish"),
        Bundle(b"rubbish", FIRST.cert, FIRST.key),
        Bundle(issue(NAMES, NOW).ca, FIRST.cert, FIRST.key),
    ],
    ids=["empty", "no certificate", "bad key", "bad authority", "another authority"],
)
def test_an_incomplete_or_inconsistent_bundle_is_renewed(bundle: Bundle) -> None:
    assert needs_renewal(bundle, NAMES, NOW)


def test_a_certificate_for_other_names_is_renewed() -> None:
    assert needs_renewal(FIRST, service_names("other", "slinky"), NOW)


def test_rotation_keeps_the_old_authority_while_it_is_valid() -> None:
    later = NOW + LIFETIME * 0.7
    second = issue(NAMES, later, trusted=FIRST.ca)
    third = issue(NAMES, later + LIFETIME * 0.7, trusted=second.ca)
    assert FIRST.ca in second.ca
    assert second.ca.startswith(b"-----BEGIN")
    assert len(x509.load_pem_x509_certificates(second.ca)) == 2
    assert FIRST.ca not in third.ca
    assert not needs_renewal(second, NAMES, later)
