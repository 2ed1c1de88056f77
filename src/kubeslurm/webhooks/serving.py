"""The serving certificate of the admission server, and how it is loaded from files."""

import asyncio
import ssl
import tempfile
from pathlib import Path

import structlog

POLL = 10.0
log = structlog.get_logger("kubeslurm.webhooks")


class ServingCertificate:
    """The TLS context of a server; a new certificate is used from the next connection on."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._current: tuple[bytes, bytes] | None = None
        self._loaded = asyncio.Event()

    def load(self, cert: bytes, key: bytes) -> bool:
        """Use this certificate; returns whether it is new. Raises ssl.SSLError if the key does not belong to it."""
        if (cert, key) == self._current:
            return False
        # OpenSSL loads certificates from files only; these exist just for that.
        with tempfile.TemporaryDirectory() as directory:
            crt, pem = Path(directory, "tls.crt"), Path(directory, "tls.key")
            crt.write_bytes(cert)
            pem.touch(0o600)
            pem.write_bytes(key)
            # Tried first on another context: a failing load_cert_chain leaves a context with a certificate and no key.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(crt, pem)
            self.context.load_cert_chain(crt, pem)
        self._current = (cert, key)
        self._loaded.set()
        return True

    async def wait_loaded(self) -> None:
        """Wait until there is a certificate."""
        await self._loaded.wait()


class CertificateFiles:
    """Loads the certificate from a directory, where something else renews it."""

    def __init__(self, directory: Path, serving: ServingCertificate) -> None:
        self._directory = directory
        self._serving = serving
        self._warned = ""

    async def run(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(POLL)

    def refresh(self) -> None:
        """Load what is in the directory; the old certificate stays while that cannot be used."""
        try:
            cert, key = (Path(self._directory, name).read_bytes() for name in ("tls.crt", "tls.key"))
            if self._serving.load(cert, key):
                log.info("serving certificate loaded", directory=str(self._directory))
            self._warned = ""
        except OSError as error:
            self._warn(f"cannot read {error.filename}: {error.strerror}")
        except ssl.SSLError as error:
            # The two files are replaced one after the other; the next poll reads both.
            self._warn(f"tls.crt and tls.key do not belong together: {error.reason}")

    def _warn(self, reason: str) -> None:
        if reason != self._warned:
            log.warning("no usable serving certificate", directory=str(self._directory), reason=reason)
        self._warned = reason
