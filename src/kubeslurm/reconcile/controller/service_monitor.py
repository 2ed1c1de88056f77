"""ServiceMonitors, of a kind that a cluster may not have."""

import structlog

from kubeslurm.api import names
from kubeslurm.api.kinds import SERVICE_MONITOR
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.controller import service as build
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import NotFound

log = structlog.get_logger(__name__)


class Monitors:
    """Applies each once per change: the kind is not watched, so that a cluster without it needs no special care."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._settled: dict[Key, Tree | None] = {}

    async def keep(self, controller: Controller) -> None:
        """Makes, changes or removes the ServiceMonitor of one Controller."""
        key = Key(controller.namespace, names.controller(controller.name))
        wanted = build.service_monitor(controller)
        if key in self._settled and self._settled[key] == wanted:
            return
        try:
            if wanted is not None:
                await self._kube.apply(wanted)
            elif await self._kube.get_tree(SERVICE_MONITOR, key) is not None:
                await self._kube.delete(SERVICE_MONITOR, key)
        except NotFound:
            log.info("no ServiceMonitor: this cluster has no such kind", key=str(key))
            return  # it may have one by the next pass
        self._settled[key] = wanted
