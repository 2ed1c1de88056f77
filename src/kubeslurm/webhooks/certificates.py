"""Issues the certificates of an HTTPS server that the API server trusts."""

import datetime as dt
from collections.abc import Sequence

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=365)
# The clocks of the API server and of this pod may differ a little.
SKEW = dt.timedelta(minutes=5)


class Bundle(msgspec.Struct, frozen=True):
    """PEM texts: the authorities to trust (newest first), the serving certificate and its key."""

    ca: bytes
    cert: bytes
    key: bytes


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The DNS names of a Service inside the cluster."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", service)


def issue(names: Sequence[str], now: dt.datetime, trusted: bytes = b"") -> Bundle:
    """A new authority and a serving certificate signed by it.

    The authority signs once and its key is dropped. The newest authority in `trusted` stays in the bundle while it is
    valid, so that servers which have not loaded the new certificate yet stay trusted.
    """
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{names[0]} authority")])
    # Without key identifiers OpenSSL could not tell two authorities of the same name apart.
    identity = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(identity, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    cert = (
        _certificate(subject, ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identity), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    valid = [old for old in _read(trusted) if old.not_valid_after_utc > now]
    return Bundle(b"".join(_pem(authority) for authority in [ca, *valid[:1]]), _pem(cert), _private(key))


def needs_renewal(bundle: Bundle, names: Sequence[str], now: dt.datetime) -> bool:
    """Whether the bundle is unreadable, for other names, not valid yet, or past two thirds of its lifetime."""
    try:
        cert = _read(bundle.cert)[0]
        serialization.load_pem_private_key(bundle.key, None)
        held = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
            x509.DNSName
        )
        trusted = any(cert.issuer == ca.subject and _signed_by(cert, ca) for ca in _read(bundle.ca))
    except (ValueError, TypeError, IndexError, x509.ExtensionNotFound):
        return True
    return not trusted or not set(names) <= set(held) or not cert.not_valid_before_utc <= now < renewal_time(bundle)


def renewal_time(bundle: Bundle) -> dt.datetime:
    """When two thirds of the serving certificate's lifetime are over."""
    cert = _read(bundle.cert)[0]
    return cert.not_valid_before_utc + (cert.not_valid_after_utc - cert.not_valid_before_utc) * 2 / 3


def _certificate(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _signed_by(cert: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        cert.verify_directly_issued_by(ca)
    except InvalidSignature:
        return False
    return True


def _read(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem) if pem.strip() else []


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
