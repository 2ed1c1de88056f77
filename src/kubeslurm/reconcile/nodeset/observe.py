"""Joins what Kubernetes and Slurm say about the workers of a NodeSet."""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import slots, views
from kubeslurm.api.kinds import CONTROLLER_REVISION, NODE, POD, SECRET
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import revision
from kubeslurm.control import worker_pods
from kubeslurm.control.registration import Options
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.slurm import registration
from kubeslurm.decide.nodeset.slurm.drain import CORDON
from kubeslurm.decide.nodeset.worker import EPOCH, Worker
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.caches import Caches
from kubeslurm.reconcile.nodeset import startup_files
from kubeslurm.reconcile.nodeset.memory import FailedSlots, Sightings
from kubeslurm.reconcile.nodeset.slurm import records
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.models import Node

JOBS_TIMEOUT = 5.0  # seconds that a pass waits for the jobs' ends before it goes on without them


class Observation(msgspec.Struct, frozen=True):
    """The facts of a pass, and what they were read from."""

    facts: Facts
    slurm: SlurmCluster | None
    revision: revision.Choice  # with the writes that its history needs
    changes: int  # how many changes had been heard of


class Observer:
    """Reads the stores and the jobs of Slurm."""

    def __init__(
        self,
        caches: Caches,
        clusters: Clusters,
        options: Options,
        failed_slots: FailedSlots,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caches = caches
        self._clusters = clusters
        self._options = options
        self._failed_slots = failed_slots
        self._workers: dict[str, Worker] = {}
        self._changes = 0
        self.sightings = Sightings(clock)
        pods = caches.store(POD)
        pods.subscribe(self._forget)
        pods.subscribe(self.sightings.on_pod)
        for store in (pods, caches.store(NODE), caches.store(SECRET), caches.store(CONTROLLER_REVISION)):
            store.subscribe(self._count)
        clusters.on_start(records.add_indices)
        clusters.on_start(lambda cluster: cluster.snapshot.store.subscribe(self._count))

    def read(self, nodeset: NodeSet) -> Observation:
        """What the stores know about a NodeSet now; only the ends of jobs are missing."""
        changes = self._changes
        slurm = self._clusters.of(Key(*nodeset.controller_key))
        error = _error(slurm)
        known = slurm if not error else None
        workers = self._join(nodeset, known)
        found = revision.choose(nodeset, self._revisions(nodeset), {worker.revision for worker in workers})
        facts = Facts(
            now=datetime.now(UTC),
            workers=workers,
            revision=found.hash,
            collisions=found.collisions,
            startup_hashes=startup_files.hashes(self._caches, nodeset),
            key_waits=startup_files.key_waits(self._caches, nodeset),
            hosts=tuple(self._caches.store(NODE)) if _needs_hosts(nodeset) else (),
            cooling_down=self._failed_slots.cooling_down(nodeset.metadata.uid, workers),
            shared_names=self._shared_names(nodeset, workers),
            slurm_error=error,
            records=self._records(nodeset, workers, known) if known else (),
            absences=self.sightings.absences(workers, slurm),
            state_lost=self._is_state_lost(nodeset, workers, known) if known else False,
            propagated_conditions=self._options.propagated_node_conditions,
            draining_conditions=self._options.drain_on_node_conditions,
            drains_on_taints=self._options.drain_on_node_taints,
            mirrors_drains=self._options.slurm_drain_on_node == CORDON,
        )
        return Observation(facts, slurm, found, changes)

    async def with_job_ends(self, observed: Observation) -> Observation:
        """The same with the ends of the jobs on busy workers."""
        ends = await self._job_ends(observed)
        return msgspec.structs.replace(observed, facts=msgspec.structs.replace(observed.facts, job_ends=ends))

    def current(self, nodeset: NodeSet, observed: Observation) -> Facts:
        """The facts after our own writes; read again only if anything has changed since."""
        same = observed.changes == self._changes and observed.facts.slurm_error == _error(observed.slurm)
        return observed.facts if same else self.read(nodeset).facts

    def is_taken(self, nodeset: NodeSet, slurm_name: str) -> bool:
        """Whether a pod, of whatever NodeSet, claims the Slurm name already."""
        return bool(slurm_name) and self._claims(nodeset, slurm_name) > 0

    def unclaimed(self, nodeset: NodeSet, slurm: SlurmCluster | None) -> registration.Unclaimed:
        """Slurm nodes of which no pod has the name."""
        nodes = slurm.snapshot.store if slurm is not None else ()
        return registration.Unclaimed.of(nodeset, (node for node in nodes if not self._claims(nodeset, node.name)))

    async def _job_ends(self, observed: Observation) -> dict[str, str] | None:
        """When the jobs on each worker end; None when that is not known."""
        slurm = observed.slurm
        if slurm is None or not observed.facts.slurm_known:
            return None
        busy = [each.slurm_name for each in observed.facts.workers if each.node is not None and each.node.busy]
        if not busy:
            return {}
        jobs = slurm.jobs
        try:
            async with asyncio.timeout(JOBS_TIMEOUT):
                await jobs.update()
                if not jobs.deadlines(busy).keys() >= set(busy):
                    await jobs.update(within=1.0)  # a job began since: whoever goes first must not be its worker
        except (SlurmError, TimeoutError):
            return None
        return jobs.deadlines(busy) if jobs.complete else None

    def _join(self, nodeset: NodeSet, slurm: SlurmCluster | None) -> tuple[Worker, ...]:
        nodes = slurm.snapshot.store if slurm is not None else None
        hosts = self._caches.store(NODE)
        pods = worker_pods.BY_NODESET.get(self._caches, f"{nodeset.namespace}/{nodeset.name}")
        return tuple(
            self._worker(pod, nodes, hosts.get(Key("", pod.spec.nodeName)) if pod.spec.nodeName else None)
            for pod in sorted(pods, key=lambda pod: pod.name)
        )

    def _worker(self, pod: views.Pod, nodes: Store[str, Node] | None, host: views.Node | None) -> Worker:
        """The worker of the last pass if nothing about it has changed: what it has worked out is worth keeping."""
        uid = pod.metadata.uid
        last = self._workers.get(uid)
        known = last if last is not None and last.pod is pod else Worker(pod=pod)
        name = known.slurm_name
        node = nodes.get(name) if nodes is not None and name and self._has_name(known) else None
        if known.node is not node or known.host is not host:
            known = Worker(pod=pod, node=node, host=host)
        if known is not last:
            self._workers[uid] = known
        return known

    def _has_name(self, worker: Worker) -> bool:
        """Whether the Slurm node of its name is this pod's: of several pods that claim it, the oldest has it."""
        if worker_pods.BY_SLURM_NODE.count(self._caches, worker.claim) < 2:
            return True
        oldest = min(worker_pods.BY_SLURM_NODE.get(self._caches, worker.claim), key=_age)
        return oldest.metadata.uid == worker.pod.metadata.uid

    def _claims(self, nodeset: NodeSet, slurm_name: str) -> int:
        cluster = f"{nodeset.namespace}/{nodeset.spec.controllerRef.name}"
        return worker_pods.BY_SLURM_NODE.count(self._caches, f"{cluster}/{slurm_name}")

    def _count(self, _key: object, _old: object, _new: object) -> None:
        self._changes += 1

    def _forget(self, _key: Key, old: views.Pod | None, new: views.Pod | None) -> None:
        if new is None and old is not None:
            self._workers.pop(old.metadata.uid, None)

    def _revisions(self, nodeset: NodeSet) -> Iterable[views.ControllerRevision]:
        found = worker_pods.REVISIONS_BY_NODESET.get(self._caches, f"{nodeset.namespace}/{nodeset.name}")
        return [each for each in found if (owner := each.metadata.controller) and owner.uid == nodeset.metadata.uid]

    def _records(self, nodeset: NodeSet, workers: tuple[Worker, ...], slurm: SlurmCluster) -> tuple[Node, ...]:
        pods = self._caches.store(POD)
        return records.without_pod(
            nodeset,
            workers,
            slurm,
            claims=lambda name: self._claims(nodeset, name),
            has_pod=lambda name: Key(nodeset.namespace, name) in pods,
        )

    def _shared_names(self, nodeset: NodeSet, workers: Iterable[Worker]) -> tuple[str, ...]:
        names = (worker.slurm_name for worker in workers)
        return tuple(name for name in names if name and self._claims(nodeset, name) > 1)

    def _is_state_lost(self, nodeset: NodeSet, workers: Iterable[Worker], slurm: SlurmCluster) -> bool:
        """Judged over all workers of the cluster, and only when one of these is missing."""
        if all(worker.node is not None for worker in workers):
            return False
        cluster = f"{nodeset.namespace}/{nodeset.spec.controllerRef.name}"
        pods = [pod for pod in worker_pods.BY_CLUSTER.get(self._caches, cluster) if pod.ready]
        missing = sum(1 for pod in pods if Worker(pod=pod).slurm_name not in slurm.snapshot.store)
        return registration.is_state_lost(missing, len(pods), len(slurm.snapshot.store))


def _age(pod: views.Pod) -> tuple[datetime, str]:
    return (pod.metadata.creationTimestamp or EPOCH, pod.metadata.uid)


def _needs_hosts(nodeset: NodeSet) -> bool:
    spec = nodeset.spec
    return spec.scalingMode == "DaemonSet" or spec.pinToNode or slots.uses_host_network(nodeset)


def _error(slurm: SlurmCluster | None) -> str:
    """Why Slurm cannot be asked; empty when it can."""
    if slurm is None:
        return "no RestApi of this cluster is known"
    if slurm.snapshot.fresh():
        return ""
    return slurm.snapshot.failure or "its last answer is too old"
