"""The TLS side of the admission server: the certificate in use, and where new ones come from."""

import asyncio
import ssl
import tempfile
from pathlib import Path

import structlog

POLL = 10.0
log = structlog.get_logger("kubeslurm.webhooks")


class Serving:
    """A live TLS context; a new certificate is used from the next connection on."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._current: tuple[bytes, bytes] | None = None
        self._loaded = asyncio.Event()

    def take(self, cert: bytes, key: bytes) -> bool:
        """Serve this certificate; says whether it is another one. Raises ssl.SSLError if key and certificate differ."""
        if (cert, key) == self._current:
            return False
        # OpenSSL loads certificates from files only; they exist for the moment it takes.
        with tempfile.TemporaryDirectory() as directory:
            crt, pem = Path(directory, "tls.crt"), Path(directory, "tls.key")
            crt.write_bytes(cert)
            pem.touch(0o600)
            pem.write_bytes(key)
            # A trial first: a failing load_cert_chain leaves the live context with a certificate and no key.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(crt, pem)
            self.context.load_cert_chain(crt, pem)
        self._current = (cert, key)
        self._loaded.set()
        return True

    async def wait_loaded(self) -> None:
        """Returns once there is a certificate to serve."""
        await self._loaded.wait()


class Files:
    """Certificates that someone else puts into a directory and renews there."""

    def __init__(self, directory: Path, serving: Serving) -> None:
        self._directory = directory
        self._serving = serving
        self._said = ""

    async def run(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(POLL)

    def refresh(self) -> None:
        """Take what is in the directory; keep the old one while that cannot be used."""
        try:
            cert, key = (Path(self._directory, name).read_bytes() for name in ("tls.crt", "tls.key"))
            if self._serving.take(cert, key):
                log.info("serving certificate loaded", directory=str(self._directory))
            self._said = ""
        except OSError as error:
            self._say(f"cannot read {error.filename}: {error.strerror}")
        except ssl.SSLError as error:
            # The two files are swapped one after the other; the next look sees both.
            self._say(f"tls.crt and tls.key do not belong together: {error.reason}")

    def _say(self, trouble: str) -> None:
        if trouble != self._said:
            log.warning("no usable serving certificate", directory=str(self._directory), reason=trouble)
        self._said = trouble
