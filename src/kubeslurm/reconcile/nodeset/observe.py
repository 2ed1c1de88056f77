"""Joins what Kubernetes and Slurm say about the workers of a NodeSet."""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names, slots, views
from kubeslurm.api.kinds import CONTROLLER_REVISION, NODE, POD, SECRET
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import revision
from kubeslurm.control import worker_pods
from kubeslurm.decide.nodeset import health
from kubeslurm.decide.nodeset.facts import EPOCH, PodInfo, Seen, Worker
from kubeslurm.decide.nodeset.stale import is_stale
from kubeslurm.engine.key import Key
from kubeslurm.engine.store import Store
from kubeslurm.kube.caches import Caches
from kubeslurm.reconcile.nodeset import startup_files
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.rest.models import Node

BY_POD_INFO = "pod-info"
BY_TRAIT = "trait"  # nodes without a comment, under all that may tell whose they are


class View(msgspec.Struct, frozen=True):
    """One NodeSet as a pass sees it."""

    seen: Seen
    slurm: SlurmCluster | None
    failure: str  # why Slurm cannot be asked; empty when it can
    absences: dict[str, int]
    revision: revision.Choice
    hashes: Mapping[str, str]  # annotation -> hash of what workers read only when they start
    moment: int = 0  # how many changes had been heard of


class Observer:
    """Reads the stores; never waits."""

    def __init__(self, caches: Caches, clusters: Clusters, clock: Callable[[], float] = time.monotonic) -> None:
        self._caches = caches
        self._clusters = clusters
        self._clock = clock
        self._workers: dict[str, Worker] = {}
        self._missing: dict[tuple[str, str], float] = {}  # since when a running slurmd has no node in Slurm
        self._started: dict[str, tuple[str, float]] = {}  # pod -> the slurmd that came up before our eyes, and when
        self._moment = 0
        pods = caches.store(POD)
        pods.subscribe(self._forget)
        pods.subscribe(self._watch_slurmd)
        pods.subscribe(self._count)
        caches.store(NODE).subscribe(self._count)
        caches.store(SECRET).subscribe(self._count)
        caches.store(CONTROLLER_REVISION).subscribe(self._count)
        clusters.on_start(_index)
        clusters.on_start(lambda cluster: cluster.snapshot.store.subscribe(self._count))

    def view(self, nodeset: NodeSet) -> View:
        """All that is known about a NodeSet now."""
        moment = self._moment
        slurm = self._clusters.of(Key(*nodeset.controller_key))
        known = slurm is not None and slurm.snapshot.fresh()
        pods = self._pods(nodeset)
        nodes, hosts = slurm.snapshot.store if slurm else None, self._caches.store(NODE)
        workers = tuple(
            self._worker(
                pod, nodes if known else None, hosts.get(Key("", pod.spec.nodeName)) if pod.spec.nodeName else None
            )
            for pod in pods
        )
        hashes = startup_files.hashes(self._caches, nodeset)
        choice = revision.choose(nodeset, self._revisions(nodeset), {worker.revision for worker in workers})
        seen = Seen(
            workers=workers,
            revision=choice.hash,
            now=datetime.now(UTC),
            known=known,
            records=self._records(nodeset, workers, slurm) if slurm and known else (),
            hosts=tuple(hosts) if _needs_hosts(nodeset) else (),
            amnesia=self._amnesia(nodeset, workers, slurm) if slurm and known else False,
            shared=self._shared(nodeset, workers),
            stale=frozenset(worker.name for worker in workers if is_stale(nodeset, worker, hashes)),
        )
        return View(seen, slurm, _failure(slurm), self._absences(workers, slurm), choice, hashes, moment)

    def is_current(self, view: View) -> bool:
        """Whether nothing has changed since, by us or anybody else, and Slurm's answers have not become too old."""
        return view.moment == self._moment and view.failure == _failure(view.slurm)

    def ages(self, workers: Iterable[Worker]) -> dict[str, float]:
        """For how many seconds slurmd has run, by pod; of those workers only that were here before it."""
        known = ((worker, self._started.get(worker.pod.metadata.uid, ("", 0.0))) for worker in workers)
        now = self._clock()
        return {worker.name: now - since for worker, (slurmd, since) in known if slurmd and slurmd == worker.container}

    def _worker(self, pod: views.Pod, nodes: Store[str, Node] | None, host: views.Node | None) -> Worker:
        """The worker of the last pass if nothing about it has changed: what it has worked out is worth keeping."""
        uid = pod.metadata.uid
        last = self._workers.get(uid)
        known = last if last is not None and last.pod is pod else Worker(pod=pod)
        name = known.slurm_name
        node = nodes.get(name) if nodes is not None and name and self._holds_name(known) else None
        if known.node is not node or known.host is not host:
            known = Worker(pod=pod, node=node, host=host)
        if known is not last:
            self._workers[uid] = known
        return known

    def _holds_name(self, worker: Worker) -> bool:
        """Whether the Slurm node of its name is this pod's: of several pods that claim it, the oldest has it."""
        if worker_pods.BY_SLURM_NODE.count(self._caches, worker.claim) < 2:
            return True
        oldest = min(worker_pods.BY_SLURM_NODE.get(self._caches, worker.claim), key=_age)
        return oldest.metadata.uid == worker.pod.metadata.uid

    def is_taken(self, nodeset: NodeSet, slurm_name: str) -> bool:
        """Whether a pod, of whatever NodeSet, claims the Slurm name already."""
        return bool(slurm_name) and self._claims(nodeset, slurm_name) > 0

    def _claims(self, nodeset: NodeSet, slurm_name: str) -> int:
        cluster = f"{nodeset.namespace}/{nodeset.spec.controllerRef.name}"
        return worker_pods.BY_SLURM_NODE.count(self._caches, f"{cluster}/{slurm_name}")

    def _count(self, _key: object, _old: object, _new: object) -> None:
        self._moment += 1

    def _watch_slurmd(self, _key: Key, old: views.Pod | None, new: views.Pod | None) -> None:
        if old is None or new is None or old.metadata.uid != new.metadata.uid:
            return  # a pod that is seen for the first time may have run for long
        slurmd = Worker(pod=new).container
        if slurmd and slurmd != Worker(pod=old).container:
            self._started[new.metadata.uid] = (slurmd, self._clock())

    def _forget(self, _key: Key, old: views.Pod | None, new: views.Pod | None) -> None:
        if new is None and old is not None:
            self._workers.pop(old.metadata.uid, None)
            self._started.pop(old.metadata.uid, None)
            for slot in [slot for slot in self._missing if slot[0] == old.metadata.uid]:
                del self._missing[slot]

    def _pods(self, nodeset: NodeSet) -> list[views.Pod]:
        pods = worker_pods.BY_NODESET.get(self._caches, f"{nodeset.namespace}/{nodeset.name}")
        return sorted(pods, key=lambda pod: pod.name)

    def _revisions(self, nodeset: NodeSet) -> Iterable[views.ControllerRevision]:
        found = worker_pods.REVISIONS_BY_NODESET.get(self._caches, f"{nodeset.namespace}/{nodeset.name}")
        return [each for each in found if (owner := each.metadata.controller) and owner.uid == nodeset.metadata.uid]

    def _records(self, nodeset: NodeSet, workers: Iterable[Worker], slurm: SlurmCluster) -> tuple[Node, ...]:
        """Slurm nodes of this NodeSet without a pod, told by their comment; those without any, by other traits."""
        ended = {worker.name for worker in workers if worker.finished}
        gone = {worker.slurm_name for worker in workers if worker.finished and not worker.terminating}
        pods, nodes = self._caches.store(POD), slurm.snapshot.store
        found = []
        for node in nodes.by(BY_POD_INFO, f"{nodeset.namespace}/{nodeset.name}"):
            served = self._claims(nodeset, node.name) > (1 if node.name in gone else 0)
            if served:
                continue  # as nearly all are, so that their comments need not be read
            info = PodInfo.parse(node.comment)
            known = Key(nodeset.namespace, info.podName) in pods and info.podName not in ended
            if not known and health.is_of(nodeset, info, node):
                found.append(node)
        traits = (nodeset.slurm_name, names.slurm_node_owner(nodeset.metadata.uid))
        candidates = {node.name: node for trait in traits for node in nodes.by(BY_TRAIT, trait)}
        placed = all(worker.slurm_name for worker in workers)
        unnamed = health.unnamed(nodeset, candidates.values(), placed=placed)
        return (*found, *(node for node in unnamed if not self._claims(nodeset, node.name)))

    def _shared(self, nodeset: NodeSet, found: Iterable[Worker]) -> tuple[str, ...]:
        names = (worker.slurm_name for worker in found)
        return tuple(name for name in names if name and self._claims(nodeset, name) > 1)

    def _amnesia(self, nodeset: NodeSet, workers: Iterable[Worker], slurm: SlurmCluster) -> bool:
        """Judged over all workers of the cluster, and only when one of these is missing."""
        if all(worker.node is not None for worker in workers):
            return False
        cluster = f"{nodeset.namespace}/{nodeset.spec.controllerRef.name}"
        pods = [pod for pod in worker_pods.BY_CLUSTER.get(self._caches, cluster) if pod.ready]
        missing = sum(1 for pod in pods if Worker(pod=pod).slurm_name not in slurm.snapshot.store)
        return health.amnesia(missing, len(pods), len(slurm.snapshot.store))

    def _absences(self, workers: Iterable[Worker], slurm: SlurmCluster | None) -> dict[str, int]:
        """Full lists in a row without the node since it was first missed here: a kubelet's clock may be off."""
        now, found = self._clock(), {}
        for worker in workers:
            slot = (worker.pod.metadata.uid, worker.container)
            if slurm is None or worker.node is not None or not worker.container:
                self._missing.pop(slot, None)
                continue
            since = self._missing.setdefault(slot, now)
            found[worker.slurm_name] = slurm.snapshot.absences(worker.slurm_name, since=since)
        return found


def _age(pod: views.Pod) -> tuple[datetime, str]:
    return (pod.metadata.creationTimestamp or EPOCH, pod.metadata.uid)


def _needs_hosts(nodeset: NodeSet) -> bool:
    spec = nodeset.spec
    return spec.scalingMode == "DaemonSet" or spec.pinToNode or slots.uses_host_network(nodeset)


def _index(cluster: SlurmCluster) -> None:
    cluster.snapshot.store.add_index(BY_POD_INFO, pod_owner)
    cluster.snapshot.store.add_index(BY_TRAIT, _traits)


def _traits(node: Node) -> tuple[str, ...]:
    if node.comment:
        return ()
    return (*node.features, node.extra) if node.extra else node.features


def pod_owner(node: Node) -> tuple[str, ...]:
    """Files a Slurm node under the NodeSet that its comment names."""
    info = PodInfo.parse(node.comment) if node.comment else PodInfo()
    return (f"{info.namespace}/{info.nodeSetName}",) if info.nodeSetName else ()


def _failure(slurm: SlurmCluster | None) -> str:
    if slurm is None:
        return "no RestApi of this cluster is known"
    if slurm.snapshot.fresh():
        return ""
    return slurm.snapshot.failure or "its last answer is too old"
