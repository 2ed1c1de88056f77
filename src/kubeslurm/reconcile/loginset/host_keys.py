"""New ssh host keys, as sshd reads them."""

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

PrivateKey = rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey
RSA_BITS = 3072  # what ssh-keygen makes


def make() -> dict[str, bytes]:
    """One key pair of each kind by file name; takes a second of computing, so it is no work for the event loop."""
    pairs: dict[str, PrivateKey] = {
        "ssh_host_rsa_key": rsa.generate_private_key(65537, RSA_BITS),
        "ssh_host_ed25519_key": ed25519.Ed25519PrivateKey.generate(),
        "ssh_host_ecdsa_key": ec.generate_private_key(ec.SECP256R1()),
    }
    files: dict[str, bytes] = {}
    for name, key in pairs.items():
        files[name] = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        files[f"{name}.pub"] = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    return files
