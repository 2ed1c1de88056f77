"""Controller: keeps one cluster's slurmctld, its address and its configuration as declared."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, STATEFULSET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.build.common.adoption import adapted, is_adoption
from kubeslurm.build.controller.config import files, referenced
from kubeslurm.build.controller.service import service
from kubeslurm.build.controller.statefulset import statefulset
from kubeslurm.control import references, refusals, status
from kubeslurm.control.registration import Context
from kubeslurm.decide.config.stages import Verdict
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.controller.acceptance import ConfigGate, Mounted
from kubeslurm.reconcile.controller.delivery import Arrival, Courier
from kubeslurm.reconcile.controller.node_loss import rescue
from kubeslurm.reconcile.controller.observe import Observed, observe, restart_hash
from kubeslurm.reconcile.controller.service_monitor import Monitors
from kubeslurm.report import controller as report
from kubeslurm.report.conditions import Finding
from kubeslurm.report.events import Event
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError


class ControllerReconciler:
    """One pass: look, check the configuration, apply the objects, deliver the configuration, report."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.clusters = context.clusters
        self.events = context.events
        self.gate = ConfigGate(context.kube, context.caches, context.events, clock)
        self.courier = Courier(context.kube, context.events, clock)
        self.monitors = Monitors(context.kube)
        self._versions: dict[Key, tuple[str, str]] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        controller = self.caches.store(CONTROLLER).get(key)
        if controller is None:
            self.courier.forget(key)
            return None
        if controller.deleting and await self._released(controller):
            return None
        if not controller.deleting:
            controller = await self.kube.add_finalizer(CONTROLLER, controller, names.FINALIZER)

        seen = observe(self.caches, controller, self.gate.live_conf(controller))
        await rescue(self.kube, self.caches, self.events, controller, seen.pod)

        # A configuration reaches the mounted ConfigMap only through this gate.
        config, refused = self.gate.untouched(controller), None
        if seen.sources is not None:
            config = await self.gate.admit(controller, files(seen.sources))
            refused = await refusals.finding(self._apply(controller, seen, config), names.SLURMCTLD)
        if config.repaired and seen.pod is not None:
            await self.courier.refresh(seen.pod)
        conf = self.gate.live_conf(controller)
        arrival = await self.courier.deliver(controller, config.live, conf, seen.pod, self.clusters.of(key))

        await self._report(controller, seen, config, arrival, refused)
        pause = config.pause or arrival.again
        return refusals.again(refused) if pause is None else Requeue(after=pause)

    async def _report(
        self, controller: Controller, seen: Observed, config: Mounted, arrival: Arrival, refused: Finding | None
    ) -> None:
        key = Key(*controller.key)
        slurm = self.clusters.of(key)
        found = report.Seen(
            check=config.check,
            wanted=config.wanted,
            live=config.live,
            delivery=arrival.step,
            delivery_trouble=arrival.trouble,
            missing=seen.missing,
            refused=refused,
            pod=seen.pod,
            reachable=slurm is not None and slurm.snapshot.fresh(),
            restapis=seen.restapis,
            accounting_awaited=seen.accounting_awaited,
            version=await self._version(key, seen.pod, slurm),
            nodes=len(slurm.snapshot.store) if slurm else controller.status.nodes,
            nodesets=seen.nodesets,
            now=datetime.now(UTC),
        )
        await status.write(self.kube, CONTROLLER, controller, report.status(controller, found))

    async def _apply(self, controller: Controller, seen: Observed, config: Mounted) -> None:
        await self.monitors.keep(controller)
        if controller.spec.external:
            return
        await self.kube.apply(service(controller))
        current = self.caches.store(STATEFULSET).get(Key(controller.namespace, names.controller(controller.name)))
        accepted = self.gate.accepted(controller)
        # Made only once there is a checked configuration to mount, and a database to register the new cluster in. None
        # may be on trial: a first start with the address of a slurmdbd that is no longer wanted would never end.
        too_early = seen.accounting_awaited or config.check.verdict in (Verdict.TRY, Verdict.TRYING)
        if config.live and accepted and (current is not None or not too_early):
            hashes = {**seen.key_hashes, names.RESTART_HASH: restart_hash(accepted)}
            wanted = adapted(statefulset(controller, hashes), current)
            await self.kube.apply(wanted)
            if current is not None and is_adoption(wanted, current):
                self._tell_adoption(controller)

    def _tell_adoption(self, controller: Controller) -> None:
        """Says once that another operator's pod goes on, and what that means for the files it mounts by itself."""
        message = "the slurmctld pod of another operator is taken over as it is"
        if files := ", ".join(referenced(controller)):
            message += f"; until it is made anew an edit of {files} reaches it unchecked"
        self.events.normal(controller, Event.ADOPTED, message)

    async def _released(self, controller: Controller) -> bool:
        """Lets a deleted Controller go once no NodeSet needs its slurmctld for draining."""
        forced = controller.metadata.annotations.get(names.FORCE_DELETE) == "true"
        if references.nodesets(self.caches, Key(*controller.key)) and not forced:
            return False
        await self.kube.remove_finalizer(CONTROLLER, controller, names.FINALIZER)
        return True

    async def _version(self, key: Key, pod: Pod | None, slurm: SlurmCluster | None) -> str:
        """The release of slurmctld, asked for once per container."""
        if slurm is None or not slurm.snapshot.fresh():
            return ""
        container = pod.container_status(names.SLURMCTLD) if pod else None
        instance = container.containerID if container else "external"
        known, version = self._versions.get(key, ("", ""))
        if known != instance or not version:
            try:
                version = await slurm.client.release()
            except SlurmError:
                return ""
            self._versions[key] = (instance, version)
        return version
