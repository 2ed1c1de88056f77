"""The composition root of the admission server."""

import asyncio
from pathlib import Path
from typing import Any

from kubeslurm.engine.key import Key
from kubeslurm.engine.manager import Manager
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.transport.connection import Connection, connect
from kubeslurm.operator.http.server import Server
from kubeslurm.operator.process import add_servers, kubeconfig, run_until
from kubeslurm.operator.settings.model import SettingsError, WebhookSettings, address
from kubeslurm.webhooks.app import admission
from kubeslurm.webhooks.certificates import service_names
from kubeslurm.webhooks.rotation import CertificateRotation, RotationSettings
from kubeslurm.webhooks.serving import CertificateFiles, ServingCertificate


class Admission:
    """Serves admission reviews as soon as there is a certificate; every replica does, leader or not."""

    def __init__(self, settings: WebhookSettings) -> None:
        at = address(settings.server_addr)
        if at is None:
            raise SettingsError("the webhook needs a server address: set server-addr to something other than 0.")
        self.connection = Connection(connect(kubeconfig(settings)))
        kube = Kube(self.connection, Caches(self.connection), manager="kubeslurm-webhook")
        self.serving = ServingCertificate()
        self.server = Server(admission(kube), at, tls=self.serving.context)
        self.manager = Manager()
        self.manager.add_source("certificates", self._certificates(settings, kube))
        self.manager.add_source("admission", _AfterCertificate(self.serving, self.server))
        add_servers(self.manager, settings, self.connection, self.waiting)

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set."""
        try:
            await run_until(self.manager, stop)
        finally:
            await self.connection.close()

    def _certificates(self, settings: WebhookSettings, kube: Kube) -> Any:
        if not settings.cert_secret:
            return CertificateFiles(Path(settings.cert_dir), self.serving)
        names = service_names(settings.service_name, settings.namespace)
        rotation = RotationSettings(Key(settings.namespace, settings.cert_secret), names, settings.configuration_name)
        return CertificateRotation(kube, rotation, self.serving)

    def waiting(self) -> list[str]:
        """What readiness waits for."""
        return [] if self.server.started else ["certificate"]


class _AfterCertificate:
    """Starts the server once a certificate is loaded."""

    def __init__(self, serving: ServingCertificate, server: Server) -> None:
        self._serving = serving
        self._server = server

    async def run(self) -> None:
        await self._serving.wait_loaded()
        await self._server.run()
