"""Joins what Kubernetes and Slurm say about the workers of a NodeSet."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import views
from kubeslurm.api.kinds import CONTROLLER, CONTROLLER_REVISION, NODE, NODESET, POD
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.build import digest, names, revision, slurmd_conf
from kubeslurm.build.worker import EMPTY_HASH, SshHashes
from kubeslurm.decide import health
from kubeslurm.decide.facts import PodInfo, Seen, Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.reconcile import references
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.models import Node

BY_OWNER = "nodeset"
BY_SLURM_NAME = "slurm-node"
BY_NODE = "kubernetes-node"
BY_POD_INFO = "pod-info"
BY_FEATURE = "feature"


class View(msgspec.Struct, frozen=True):
    """One NodeSet as a pass sees it."""

    seen: Seen
    slurm: SlurmCluster | None
    failure: str  # why Slurm cannot be asked; empty when it can
    absences: dict[str, int]
    revision: revision.Choice
    ssh: SshHashes


class Observer:
    """Reads the stores; never waits."""

    def __init__(self, caches: Caches, clusters: Clusters, clock: Callable[[], float] = time.monotonic) -> None:
        self._caches = caches
        self._clusters = clusters
        self._clock = clock
        pods = caches.store(POD)
        pods.add_index(BY_OWNER, owner)
        pods.add_index(BY_SLURM_NAME, slurm_names)
        pods.add_index(BY_NODE, lambda pod: (pod.spec.nodeName,) if pod.spec.nodeName and owner(pod) else ())
        caches.store(CONTROLLER_REVISION).add_index(BY_OWNER, owner)
        clusters.on_start(_index)

    def view(self, nodeset: NodeSet) -> View:
        """All that is known about a NodeSet now."""
        slurm = self._clusters.of(Key(*nodeset.controller_key))
        known = slurm is not None and slurm.snapshot.fresh()
        pods = self._pods(nodeset)
        nodes, hosts = slurm.snapshot.store if slurm else None, self._caches.store(NODE)
        workers = tuple(
            Worker(
                pod=pod,
                node=nodes.get(name) if nodes and known and (name := Worker(pod=pod).slurm_name) else None,
                host=hosts.get(Key("", pod.spec.nodeName)) if pod.spec.nodeName else None,
            )
            for pod in pods
        )
        ssh = self._ssh(nodeset)
        choice = revision.choose(nodeset, self._revisions(nodeset), {worker.revision for worker in workers})
        seen = Seen(
            workers=workers,
            revision=choice.hash,
            now=datetime.now(UTC),
            known=known,
            records=self._records(nodeset, workers, slurm) if slurm and known else (),
            hosts=tuple(hosts) if nodeset.spec.scalingMode == "DaemonSet" or nodeset.spec.pinToNode else (),
            stale=frozenset(worker.name for worker in workers if _ssh_differs(nodeset, worker, ssh)),
        )
        return View(seen, slurm, _failure(slurm), self._absences(workers, slurm), choice, ssh)

    def _pods(self, nodeset: NodeSet) -> list[views.Pod]:
        pods = self._caches.store(POD).by(BY_OWNER, f"{nodeset.namespace}/{nodeset.name}")
        return sorted(pods, key=lambda pod: pod.name)

    def _revisions(self, nodeset: NodeSet) -> Iterable[views.ControllerRevision]:
        found = self._caches.store(CONTROLLER_REVISION).by(BY_OWNER, f"{nodeset.namespace}/{nodeset.name}")
        return [each for each in found if (owner := each.metadata.controller) and owner.uid == nodeset.metadata.uid]

    def _records(self, nodeset: NodeSet, workers: Iterable[Worker], slurm: SlurmCluster) -> tuple[Node, ...]:
        """Slurm nodes of this NodeSet without a pod, told by their comment; one without any, by name and silence."""
        served = {worker.slurm_name for worker in workers}
        pods, nodes = self._caches.store(POD), slurm.snapshot.store
        named = nodes.by(BY_POD_INFO, f"{nodeset.namespace}/{nodeset.name}")
        silent = health.silent(nodeset, nodes.by(BY_FEATURE, nodeset.slurm_name))
        return tuple(
            node
            for node in (*named, *silent)
            if node.name not in served and Key(nodeset.namespace, PodInfo.parse(node.comment).podName) not in pods
        )

    def _absences(self, workers: Iterable[Worker], slurm: SlurmCluster | None) -> dict[str, int]:
        if slurm is None:
            return {}
        now, wall = self._clock(), datetime.now(UTC)
        found = {}
        for worker in workers:
            if worker.node is None and (since := worker.started_at) is not None:
                age = (wall - since).total_seconds()
                found[worker.slurm_name] = slurm.snapshot.absences(worker.slurm_name, since=now - age)
        return found

    def _ssh(self, nodeset: NodeSet) -> SshHashes:
        ssh = nodeset.spec.ssh
        if ssh is None or not ssh.enabled:
            return SshHashes()
        found = references.secret(self._caches, nodeset.namespace, ssh.sssdConfRef)
        users = references.key_bytes(found, ssh.sssdConfRef) or b""
        return SshHashes(
            sshd=digest.of_values({"sshd_config": slurmd_conf.sshd_config(ssh.extraSshdConfig).encode()}),
            sssd=digest.of_values({"sssd.conf": users}) if users else EMPTY_HASH,
        )


def _index(cluster: SlurmCluster) -> None:
    cluster.snapshot.store.add_index(BY_POD_INFO, pod_owner)
    cluster.snapshot.store.add_index(BY_FEATURE, lambda node: node.features)


def slurm_names(pod: views.Pod) -> tuple[str, ...]:
    """Files a worker pod under its cluster and Slurm node, so that a changed node finds its NodeSet."""
    cluster = pod.metadata.labels.get(names.LABEL_CLUSTER)
    name = Worker(pod=pod).slurm_name if cluster else ""
    return (f"{pod.namespace}/{cluster}/{name}",) if name else ()


def pod_owner(node: Node) -> tuple[str, ...]:
    """Files a Slurm node under the NodeSet that its comment names."""
    info = PodInfo.parse(node.comment) if node.comment else PodInfo()
    return (f"{info.namespace}/{info.nodeSetName}",) if info.nodeSetName else ()


def owner(obj: views.Pod | views.ControllerRevision) -> tuple[str, ...]:
    """The NodeSet an object belongs to; a worker that lost its owner reference is recognised by its labels."""
    owner = obj.metadata.controller
    if owner is not None:
        return (f"{obj.namespace}/{owner.name}",) if owner.kind == NODESET.kind else ()
    labels = obj.metadata.labels
    instance = labels.get(names.LABEL_INSTANCE)
    if labels.get(names.LABEL_NAME) == names.SLURMD and names.LABEL_CLUSTER in labels and instance:
        return (f"{obj.namespace}/{instance}",)
    return ()


def _ssh_differs(nodeset: NodeSet, worker: Worker, ssh: SshHashes) -> bool:
    """Whether the pod mounted other ssh files; pods that a predecessor made are not restarted over a digest."""
    made_here = any(owner.kind == CONTROLLER.kind for owner in worker.pod.metadata.ownerReferences)
    if not made_here or not (nodeset.spec.ssh and nodeset.spec.ssh.enabled):
        return False
    have = worker.pod.metadata.annotations
    sssd = ssh.sssd if ssh.sssd != EMPTY_HASH else have.get(names.SSSD_CONF_HASH)  # the Secret is missing: wait for it
    return (have.get(names.SSHD_CONF_HASH), have.get(names.SSSD_CONF_HASH)) != (ssh.sshd, sssd)


def _failure(slurm: SlurmCluster | None) -> str:
    if slurm is None:
        return "no RestApi of this cluster is known"
    if slurm.snapshot.fresh():
        return ""
    return slurm.snapshot.failure or "its last answer is too old"
