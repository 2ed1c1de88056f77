"""RestApi: keeps the slurmrestd pods of one cluster and their address as declared."""

from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, DEPLOYMENT, RESTAPI
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.build import restapi as build
from kubeslurm.build.common import digest
from kubeslurm.build.controller.config import SLURM_CONF
from kubeslurm.control import deletion, references, refusals, second_owner, status, workloads
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.report import restapi as report
from kubeslurm.report.restapi import Facts


class RestApiReconciler:
    """One pass: observe, apply Service and Deployment, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events

    async def reconcile(self, key: Key) -> Requeue | None:
        restapi = self.caches.store(RESTAPI).get(key)
        if restapi is None:
            return None
        if restapi.deleting:
            nodesets = references.holders(self.caches, Key(*restapi.controller_key))
            if await deletion.release(self.kube, RESTAPI, restapi, nodesets):
                return None
        else:
            restapi = await self.kube.add_finalizer(RESTAPI, restapi, names.FINALIZER)

        facts = self.observe(restapi)
        rejected = None
        # A pod whose files are missing would only be retried ever more slowly.
        if facts.controller is not None and facts.slurm_conf and not restapi.deleting:
            rejected = await refusals.rejection(self.apply(restapi, facts.controller, facts), names.SLURMRESTD)
        await status.write(self.kube, RESTAPI, restapi, report.status(restapi, facts, rejected))
        return refusals.again(rejected)

    def observe(self, restapi: RestApi) -> Facts:
        key = Key(*restapi.controller_key)
        delivered = references.configmap(self.caches, key.namespace, names.config(key.name))
        return Facts(
            now=datetime.now(UTC),
            controller=self.caches.store(CONTROLLER).get(key),
            slurm_conf=delivered.data.get(SLURM_CONF, "") if delivered else "",
            deployment=self.caches.store(DEPLOYMENT).get(Key(restapi.namespace, names.restapi(restapi.name))),
            pods=tuple(references.PODS_BY_RESTAPI.get(self.caches, Key(*restapi.key))),
            nodesets=tuple(sorted(nodeset.name for nodeset in references.nodesets(self.caches, key))),
        )

    async def apply(self, restapi: RestApi, controller: Controller, facts: Facts) -> None:
        settings = build.client_settings(facts.slurm_conf)
        deployment = build.deployment(restapi, controller, digest.of_files(settings))
        cluster = Key(*restapi.controller_key)
        await self.kube.apply(second_owner.added(self.caches, cluster, build.service(restapi)))
        deployment = second_owner.added(self.caches, cluster, deployment)
        await workloads.keep(self.kube, self.events, restapi, deployment, facts.deployment)
