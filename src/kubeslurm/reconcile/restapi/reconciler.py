"""RestApi: keeps the slurmrestd pods of one cluster and their address as declared."""

from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, CONTROLLER, DEPLOYMENT, RESTAPI
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.build import restapi as build
from kubeslurm.build.common import digest
from kubeslurm.build.controller.config import SLURM_CONF
from kubeslurm.control import references, refusals, status, workloads
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.report import restapi as report
from kubeslurm.report.conditions import Finding, controller_not_found


class RestApiReconciler:
    """One pass: look, apply Service and Deployment, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events

    async def reconcile(self, key: Key) -> Requeue | None:
        restapi = self.caches.store(RESTAPI).get(key)
        if restapi is None:
            return None
        if restapi.deleting and await self._released(restapi):
            return None
        if not restapi.deleting:
            restapi = await self.kube.add_finalizer(RESTAPI, restapi, names.FINALIZER)

        controller = self.caches.store(CONTROLLER).get(Key(*restapi.controller_key))
        blocked = self._blocked(restapi, controller)
        refused = None
        if blocked is None and controller is not None and not restapi.deleting:
            refused = await refusals.finding(self._apply(restapi, controller), names.SLURMRESTD)

        seen = report.status(
            restapi,
            self.caches.store(DEPLOYMENT).get(Key(key.namespace, names.restapi(key.name))),
            references.PODS_BY_RESTAPI.get(self.caches, key),
            blocked or refused,
            datetime.now(UTC),
        )
        await status.write(self.kube, RESTAPI, restapi, seen)
        return refusals.again(refused)

    def _blocked(self, restapi: RestApi, controller: Controller | None) -> Finding | None:
        """What keeps the pods from being made; a pod whose files are missing would only be retried ever more slowly."""
        if restapi.deleting:
            return None
        if controller is None:
            return controller_not_found(restapi.spec.controllerRef.name)
        return None if self._slurm_conf(controller) else report.no_config(controller.name)

    async def _apply(self, restapi: RestApi, controller: Controller) -> None:
        settings = build.client_settings(self._slurm_conf(controller))
        current = self.caches.store(DEPLOYMENT).get(Key(restapi.namespace, names.restapi(restapi.name)))
        deployment = build.deployment(restapi, controller, digest.of_files(settings))
        await self.kube.apply(build.service(restapi))
        await workloads.keep(self.kube, self.events, restapi, deployment, current)

    async def _released(self, restapi: RestApi) -> bool:
        """Lets a deleted RestApi go once no NodeSet needs it for draining."""
        forced = restapi.metadata.annotations.get(names.FORCE_DELETE) == "true"
        if references.nodesets(self.caches, Key(*restapi.controller_key)) and not forced:
            return False
        await self.kube.remove_finalizer(RESTAPI, restapi, names.FINALIZER)
        return True

    def _slurm_conf(self, controller: Controller) -> str:
        found = self.caches.store(CONFIGMAP).get(Key(controller.namespace, names.config(controller.name)))
        return found.data.get(SLURM_CONF, "") if found else ""
