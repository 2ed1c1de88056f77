"""Carries out the steps of a delivery, and remembers them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.decide.config.delivery import DeliveryStep
from kubeslurm.decide.config.facts import Facts
from kubeslurm.decide.config.plan import Plan
from kubeslurm.decide.config.running import Running
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.reconcile.controller.memory import DeliveryRecord, Memory
from kubeslurm.reconcile.controller.observe import SLURM_DEADLINE
from kubeslurm.report.events import Event, Recorder
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError

SHOWN_WORKERS = 10


class Deliverer:
    """Makes the kubelet refresh the files of the pod, and slurmctld read them."""

    def __init__(self, kube: Kube, events: Recorder, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._events = events
        self._clock = clock

    async def deliver(
        self, controller: Controller, facts: Facts, plan: Plan, memory: Memory, slurm: SlurmCluster | None
    ) -> SlurmError | TimeoutError | None:
        """Takes the planned step; returns why the last reconfigure failed, if it did."""
        pod = facts.pod
        if pod is None or plan.config is None:
            return None
        if plan.refreshes_files:
            moment = datetime.now(UTC).isoformat(timespec="seconds")
            await self._annotate(pod, names.CONFIG_REFRESHED, moment)
        record = memory.delivery_of(plan.delivered, pod.metadata.uid)
        if plan.delivery.has_read and record.read_at is None:
            record.read_at = self._clock()
        match plan.delivery.step:
            case DeliveryStep.REFRESH_FILES:
                await self._annotate(pod, names.CONFIG_DELIVERED, plan.delivered)
                record.refreshed_at = self._clock()
            case DeliveryStep.RECONFIGURE if slurm is not None:
                await self._reconfigure(slurm, record)
            case DeliveryStep.RECORD_RUNNING:
                await self._annotate(pod, names.CONFIG_RUNNING, plan.delivered)
                self._record_events(controller, facts, plan)
        return record.error

    async def _reconfigure(self, slurm: SlurmCluster, record: DeliveryRecord) -> None:
        try:
            # Asked first because it answers at once or not at all; a reconfigure of a large cluster takes its time.
            async with asyncio.timeout(SLURM_DEADLINE):
                record.before = Running.of(await slurm.client.conf())
            await slurm.client.reconfigure()
            record.error = None
        except (SlurmError, TimeoutError) as error:
            # A foreground slurmctld may drop the connection while it reads its files again; the next answer decides.
            record.error = error
        record.reconfigured_at = self._clock()
        record.attempts += 1

    def _record_events(self, controller: Controller, facts: Facts, plan: Plan) -> None:
        message = f"slurmctld and its {facts.nodes} nodes run with configuration {plan.delivered}"
        self._events.normal(controller, Event.CONFIG_RUNNING, message)
        if late := plan.delivery.late_workers:
            message = f"workers that did not take it over: {', '.join(late[:SHOWN_WORKERS])}"
            self._events.warning(controller, Event.WORKERS_NOT_RECONFIGURED, message)

    async def _annotate(self, pod: Pod, name: str, value: str) -> None:
        await self._kube.patch(POD, Key(pod.namespace, pod.name), {"metadata": {"annotations": {name: value}}})
