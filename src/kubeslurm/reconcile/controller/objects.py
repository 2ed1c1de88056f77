"""Builds and applies the objects of a Controller: ConfigMap, Service, ServiceMonitor, StatefulSet."""

import structlog

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, POD, SERVICE_MONITOR
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common import digest, second_owner
from kubeslurm.build.common.adoption import adapted, is_of_another_operator
from kubeslurm.build.controller.config import configmap, referenced
from kubeslurm.build.controller.service import service, service_monitor
from kubeslurm.build.controller.statefulset import requested, statefulset
from kubeslurm.control import second_owner as owned
from kubeslurm.control import worker_pods
from kubeslurm.decide.config.acceptance import AcceptanceStep
from kubeslurm.decide.config.facts import Configuration, Facts
from kubeslurm.decide.config.plan import Plan
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import NotFound
from kubeslurm.reconcile.controller.memory import Memory
from kubeslurm.report.events import Event, Recorder
from kubeslurm.slurm import conf

log = structlog.get_logger(__name__)


class Objects:
    """Applies what a plan says; an event follows the write that it is about, so that no failure in between loses it."""

    def __init__(self, kube: Kube, caches: Caches, events: Recorder) -> None:
        self._kube = kube
        self._caches = caches
        self._events = events

    async def apply_second_owner(self, controller: Controller) -> None:
        """Comes before everything that it owns."""
        await self._kube.apply(second_owner.configmap(controller))

    async def delete_second_owner(self, controller: Controller) -> None:
        """Lets garbage collection go on, except for workers that a user has kept with --cascade=orphan."""
        pods = worker_pods.BY_CLUSTER.get(self._caches, Key(*controller.key))
        if all(pod.metadata.controller is not None for pod in pods):
            await self._kube.delete(CONFIGMAP, Key(controller.namespace, names.second_owner(controller.name)))

    async def free_pod(self, controller: Controller, facts: Facts) -> None:
        """Deletes the slurmctld pod of a lost node at once; Kubernetes by itself takes a minute."""
        if (pod := facts.pod) is None:
            return
        await self._kube.delete(POD, Key(pod.namespace, pod.name), uid=pod.metadata.uid, grace=0)
        message = f"node {pod.spec.nodeName} is gone: slurmctld is started elsewhere"
        self._events.warning(controller, Event.NODE_LOST, message)

    async def apply_config(self, controller: Controller, facts: Facts, plan: Plan) -> None:
        """Puts the accepted configuration into the ConfigMap, and undoes edits of it."""
        acceptance = plan.acceptance
        if acceptance.step is AcceptanceStep.REJECT:
            self._events.warning(controller, Event.CONFIG_REJECTED, acceptance.message)
        if acceptance.deliver is None:
            return
        await self._apply(controller, configmap(controller, acceptance.deliver.files, acceptance.deliver.digest))
        if acceptance.deliver.digest == facts.delivered:
            return
        message = f"configuration {acceptance.deliver.digest} is accepted and delivered"
        self._events.normal(controller, Event.CONFIG_ACCEPTED, message)
        if acceptance.restart:
            keys = ", ".join(acceptance.restart)
            message = f"slurmctld is restarted: Slurm takes {keys} only at its start. Running jobs go on"
            self._events.normal(controller, Event.RESTARTING, message)

    async def apply_workload(self, controller: Controller, facts: Facts, plan: Plan, memory: Memory) -> None:
        """Applies Service and StatefulSet, and the ServiceMonitor if one is desired."""
        await self._apply_monitor(controller, memory)
        if facts.external:
            return
        await self._apply(controller, service(controller))
        if plan.keeps_slurmctld and plan.config is not None:
            hashes = {**facts.key_hashes, names.RESTART_HASH: restart_hash(plan.config)}
            desired = statefulset(controller, hashes)
            await self._apply(controller, adapted(desired, facts.statefulset, requested(controller, hashes)))
            if facts.statefulset is not None and is_of_another_operator(facts.statefulset):
                self._events.normal(controller, Event.ADOPTED, _adoption(controller))

    async def _apply(self, controller: Controller, tree: Tree) -> None:
        await self._kube.apply(owned.added(self._caches, Key(*controller.key), tree))

    async def _apply_monitor(self, controller: Controller, memory: Memory) -> None:
        """Applies it once per change: the kind is not watched, because a cluster may not have it."""
        key = Key(controller.namespace, names.controller(controller.name))
        desired = service_monitor(controller)
        if memory.monitor_applied and memory.service_monitor == desired:
            return
        try:
            if desired is not None:
                await self._kube.apply(desired)
            elif await self._kube.get_tree(SERVICE_MONITOR, key) is not None:
                await self._kube.delete(SERVICE_MONITOR, key)
        except NotFound:
            log.info("no ServiceMonitor: this cluster has no such kind", key=str(key))
            return  # it may have one by the next pass
        memory.service_monitor, memory.monitor_applied = desired, True


def restart_hash(config: Configuration) -> str:
    """Changes when something changes that slurmctld reads only at its start."""
    return digest.of_files(conf.at_start(config.files))


def _adoption(controller: Controller) -> str:
    message = "the slurmctld pod of another operator is taken over as it is"
    if files := ", ".join(referenced(controller)):
        message += f"; until it is made anew an edit of {files} reaches it unchecked"
    return message
