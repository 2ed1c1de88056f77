"""What all processes share: servers for probes and metrics, signals, and the log line for an expected failure."""

import asyncio
import datetime as dt
import signal
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import structlog

from kubeslurm.engine import collector
from kubeslurm.engine.manager import Manager
from kubeslurm.kube.leader import LeadershipLost
from kubeslurm.kube.transport.connection import ConfigurationError, Connection
from kubeslurm.operator.http import probes
from kubeslurm.operator.http.access import MetricsAccess
from kubeslurm.operator.http.server import Server
from kubeslurm.operator.leadership.other_operators import OtherOperatorError
from kubeslurm.operator.settings.model import Common, SettingsError, address
from kubeslurm.webhooks import certificates
from kubeslurm.webhooks.serving import ServingCertificate


class StillBusyError(Exception):
    """The operator is still needed, for the objects that the message names."""


EXPECTED = (ConfigurationError, SettingsError, LeadershipLost, OtherOperatorError, StillBusyError)
log = structlog.get_logger("kubeslurm.operator")


class Sources(Protocol):
    """Something that runs servers in the background."""

    def add_source(self, name: str, source: Any) -> None: ...


def kubeconfig(settings: Common) -> Path | None:
    """The file that the settings name, if they name one."""
    if not settings.kubeconfig:
        return None
    file = Path(settings.kubeconfig).expanduser()
    if not file.is_file():
        raise SettingsError(f"there is no kubeconfig {file}: name an existing file, or leave it out inside a cluster.")
    return file


def add_servers(target: Sources, settings: Common, connection: Connection, waiting: probes.Waiting) -> None:
    """Health and metrics, unless the settings switch them off."""
    if at := address(settings.health_addr):
        target.add_source("health", Server(probes.health(waiting), at))
    if at := address(settings.metrics_addr):
        admit = MetricsAccess(connection) if settings.metrics_secure else None
        tls = self_signed() if settings.metrics_secure else None
        target.add_source("metrics", Server(probes.metrics(admit), at, tls=tls))


def self_signed() -> ssl.SSLContext:
    """TLS for scrapers, which do not check who signed: the token, not the certificate, is what is guarded."""
    serving = ServingCertificate()
    bundle = certificates.issue(("slurm-operator-metrics",), dt.datetime.now(dt.UTC))
    serving.load(bundle.cert, bundle.key)
    return serving.context


async def run_until(manager: Manager, stop: asyncio.Event) -> None:
    """Runs what the manager has until `stop` is set, then stops it."""
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _task: manager.stop())
    try:
        await manager.run()
    finally:
        stopping.cancel()


def run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Runs until the work ends or a signal asks for the stop event; returns the exit status."""
    collector.configure()
    return asyncio.run(_guarded(work))


async def _guarded(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await work(stop)
    except EXPECTED as error:
        log.error("the process ends", reason=str(error))
        return 1
    return 0


def print_error(message: str) -> None:
    """Writes to standard error before logs are configured."""
    sys.stderr.write(f"{message}\n")
