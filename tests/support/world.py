"""A small world in memory: an API server, kubelets and a slurmctld, as far as a NodeSet's reconcile can tell.

It knows the truth about jobs, so it can tell when an act of the operator would have killed one.
"""

import copy
import itertools
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubeslurm.api import kinds
from kubeslurm.api.kinds import CONTROLLER, NODE, NODESET, POD, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.decide.drain import foreign_reason
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.errors import AlreadyExists, Conflict, NotFound
from kubeslurm.kube.objects import decoder_of
from kubeslurm.reconcile import references
from kubeslurm.reconcile.nodeset import NodeSetReconciler
from kubeslurm.reconcile.pace import Pace
from kubeslurm.slurm import errors, hostlist
from kubeslurm.slurm.clusters import Clusters, SlurmCluster
from kubeslurm.slurm.models import Job, JobState, Node, Nodes, NodeUpdate, Number
from kubeslurm.slurm.snapshot import Snapshot

KINDS: tuple[Kind[Any], ...] = (
    CONTROLLER,
    NODE,
    NODESET,
    POD,
    kinds.CONFIGMAP,
    kinds.CONTROLLER_REVISION,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.RESTAPI,
    kinds.SECRET,
    kinds.SERVICE,
)
CLUSTER = Key("slurm", "main")
SET = Key("slurm", "gpu")
SLURMD_TIMEOUT = 5  # rounds


class Clock:
    """The time in this world: events are far enough apart for any clock, and all of them in the past."""

    def __init__(self) -> None:
        self.now = int(datetime.now(UTC).timestamp()) - 10**6

    def tick(self) -> int:
        self.now += 10
        return self.now


_clock = Clock()


class World:
    """Everything outside of the operator, and the operator's reconcile inside it."""

    def __init__(self, *, hosts: int = 4, **settings: Any) -> None:
        self.settings = settings
        self.violations: list[str] = []
        self.versions = itertools.count(100)
        self.kube = FakeKube(self)
        self.slurm = FakeSlurm()
        self.events = FakeEvents()
        self.caches = self.kube.caches
        self.clusters = Clusters()
        for number in range(hosts):
            self.kube.put(NODE, {"metadata": {"name": f"host-{number}"}, "spec": {}, "status": {}})
        self.kube.put(CONTROLLER, _controller())
        self.start_operator()

    def start_operator(self) -> None:
        """A new process: all that was only in memory is gone."""
        self.caches = self.kube.forget()
        references.index(self.caches)
        self.clusters = Clusters()
        parts: Any = (self.kube, self.caches, self.clusters, self.events)
        self.reconciler = NodeSetReconciler(*parts, **self.settings)
        self.reconciler.pace = Pace(cpu=lambda: 0.0)  # a machine under load must not change which passes are made
        self.connect()

    def connect(self) -> None:
        """The RestApi appears: Slurm can be asked."""
        cluster = SlurmCluster(CLUSTER, ["http://restapi"], b"key")
        cluster.client = self.slurm  # type: ignore[assignment]
        cluster.snapshot = Snapshot(self.slurm)  # type: ignore[arg-type]
        self.clusters._clusters[CLUSTER] = cluster
        for listener in self.clusters._listeners:
            listener(cluster)

    def disconnect(self) -> None:
        """The RestApi object is deleted."""
        self.clusters._clusters.pop(CLUSTER, None)

    def nodeset(self, *, replicas: int, **spec: Any) -> None:
        """Creates or changes the NodeSet."""
        known = self.kube.trees.get((NODESET.plural, SET))
        tree: Tree = (
            copy.deepcopy(known) if known else {"metadata": {"name": "gpu", "namespace": "slurm", "generation": 0}}
        )
        tree["metadata"]["generation"] += 1
        image = {"image": "slurmd:1"}
        tree["spec"] = {"controllerRef": {"name": "main"}, "slurmd": image, "replicas": replicas} | spec
        self.kube.put(NODESET, tree)

    def delete_nodeset(self) -> None:
        tree = copy.deepcopy(self.kube.trees[NODESET.plural, SET])
        tree["metadata"]["deletionTimestamp"] = _stamp()
        self.kube.put(NODESET, tree)

    def cordon(self, host: str, cordoned: bool = True) -> None:
        tree = copy.deepcopy(self.kube.trees[NODE.plural, Key("", host)])
        tree["spec"]["unschedulable"] = cordoned
        self.kube.put(NODE, tree)

    async def turn(self, times: int = 1) -> None:
        """One round: Slurm is polled, the operator makes a pass, kubelets and slurmd do their part."""
        for _ in range(times):
            for cluster in self.clusters:
                await cluster.snapshot.poll()
            if (NODESET.plural, SET) in self.kube.trees:
                await self.reconciler.reconcile(SET)
            self.kubelets()
            self.slurm.ping({pod["spec"]["hostname"] for pod in self.kube.pods()})

    def kubelets(self) -> None:
        """Schedules and starts pods, and ends those that are terminating."""
        taken = {pod["spec"].get("nodeName") for pod in self.kube.pods()}
        free = [key.name for plural, key in self.kube.trees if plural == NODE.plural and key.name not in taken]
        for pod in self.kube.pods():
            if pod["metadata"].get("deletionTimestamp"):
                self.slurm.stop(pod["spec"]["hostname"])
                self.kube.remove(POD, _key(pod))
            elif not pod["spec"].get("nodeName") and free:
                self.start(pod, free.pop(0))

    def start(self, pod: Tree, host: str, *, container: str = "containerd://1") -> None:
        """slurmd of a pod starts and registers."""
        tree = copy.deepcopy(pod)
        tree["spec"]["nodeName"] = host
        state = {"running": {"startedAt": _stamp()}}
        status = {"name": "slurmd", "ready": True, "started": True, "containerID": container, "state": state}
        kept = [each for each in tree.get("status", {}).get("conditions", ()) if each["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": _stamp()}
        tree["status"] = {"phase": "Running", "conditions": [*kept, ready], "containerStatuses": [status]}
        self.kube.put(POD, tree)
        arguments = [each for container in tree["spec"].get("containers", ()) for each in container.get("args", ())]
        self.slurm.register(tree["spec"]["hostname"], extra=" ".join(arguments).partition(" --extra ")[2])

    def kill_pod(self, name: str) -> None:
        """A pod vanishes without a word, as when its machine is lost."""
        self.kube.remove(POD, Key("slurm", name))

    def restart_container(self, name: str) -> None:
        """slurmd's container is restarted under the same pod; its jobs lose their processes."""
        pod = self.kube.trees[POD.plural, Key("slurm", name)]
        self.slurm.lose(pod["spec"]["hostname"])
        self.start(pod, pod["spec"]["nodeName"], container="containerd://2")

    def pod_names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.kube.pods())

    def status(self) -> Tree:
        found: Tree = self.kube.trees[NODESET.plural, SET].get("status", {})
        return found

    def message(self, condition: str) -> str:
        return str(next(each["message"] for each in self.status()["conditions"] if each["type"] == condition))


class FakeEvents:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def normal(self, _obj: object, reason: str, message: str) -> None:
        self.said.append((reason, message))

    warning = normal


class FakeKube:
    """The API server behind the client's interface; writes by the operator are counted and judged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.trees: dict[tuple[str, Key], Tree] = {}
        self.writes: list[str] = []
        self.caches = self.forget()

    def forget(self) -> Caches:
        """Empties the operator's view of the server and fills it anew."""
        self.caches = Caches(None)  # type: ignore[arg-type]
        for kind in KINDS:
            store = self.caches.add(kind)
            for (plural, _), tree in self.trees.items():
                if plural == kind.plural:
                    store.put(decoder_of(kind).decode(msgspec.json.encode(tree)))
            store.mark_synced()
        return self.caches

    def put(self, kind: Kind[Any], tree: Tree) -> None:
        """A change by anybody, seen by the watch at once."""
        metadata = tree["metadata"]
        version = next(self.world.versions)
        metadata |= {"resourceVersion": str(version)}
        metadata.setdefault("uid", f"uid-{version}")
        if "creationTimestamp" not in metadata:
            metadata["creationTimestamp"] = _stamp()
        self.trees[kind.plural, _key(tree)] = tree
        self.caches.store(kind).put(decoder_of(kind).decode(msgspec.json.encode(tree)))

    def remove(self, kind: Kind[Any], key: Key) -> None:
        self.trees.pop((kind.plural, key), None)
        self.caches.store(kind).remove(key)

    def pods(self) -> list[Tree]:
        return [tree for (plural, _), tree in list(self.trees.items()) if plural == POD.plural]

    async def apply(self, tree: Tree, *, status: bool = False) -> Tree:
        kind = kinds.kind_of(tree)
        if status:
            whole = copy.deepcopy(self.trees[kind.plural, _key(tree)])
            whole["status"] = tree["status"]
            self._write("status", kind, tree)
            self.put(kind, whole)
        elif self.trees.get((kind.plural, _key(tree)), {}).get("spec") != tree.get("spec"):
            self._write("apply", kind, tree)
            self.put(kind, copy.deepcopy(tree))
        return tree

    async def create(self, tree: Tree) -> Tree:
        kind, made = kinds.kind_of(tree), copy.deepcopy(tree)
        made["metadata"].setdefault("name", f"{tree['metadata'].get('generateName', '')}{next(self.world.versions)}")
        if (kind.plural, _key(made)) in self.trees:
            raise AlreadyExists(409, "AlreadyExists", "it is there")
        if kind is POD:
            made["status"] = {"phase": "Pending"}
        self._write("create", kind, made)
        if kind in KINDS:
            self.put(kind, made)
        return made

    async def patch(self, kind: Kind[Any], key: Key, patch: Tree | list[Tree], **_how: str) -> Tree:
        if (kind.plural, key) not in self.trees:
            raise NotFound(404, "NotFound", "gone")
        tree = copy.deepcopy(self.trees[kind.plural, key])
        if isinstance(patch, list):
            _operate(tree, patch)
        else:
            _merge(tree, patch)
        self._write("patch", kind, tree)
        self.put(kind, tree)
        return tree

    async def delete(self, kind: Kind[Any], key: Key, *, uid: str | None = None, grace: int | None = None) -> None:
        tree = self.trees.get((kind.plural, key))
        if tree is None:
            return
        if uid is not None and tree["metadata"]["uid"] != uid:
            raise Conflict(409, "Conflict", "another object has that name")
        self._write("delete", kind, tree)
        if kind is not POD:
            self.remove(kind, key)
            return
        if self.world.slurm.has_processes(tree["spec"]["hostname"]):
            self.world.violations.append(f"{key.name} was deleted under a running job")
        marked = copy.deepcopy(tree)
        marked["metadata"] |= {"deletionTimestamp": _stamp(), "deletionGracePeriodSeconds": 30}
        self.put(kind, marked)

    async def get(self, kind: Kind[Any], key: Key) -> Any:
        tree = self.trees.get((kind.plural, key))
        return decoder_of(kind).decode(msgspec.json.encode(tree)) if tree else None

    async def add_finalizer(self, kind: Kind[Any], obj: Any, name: str) -> Any:
        if name not in obj.metadata.finalizers:
            tree = copy.deepcopy(self.trees[kind.plural, Key(*obj.key)])
            tree["metadata"]["finalizers"] = [*tree["metadata"].get("finalizers", ()), name]
            self.put(kind, tree)
        return self.caches.store(kind).get(Key(*obj.key))

    async def remove_finalizer(self, kind: Kind[Any], obj: Any, _name: str) -> None:
        self.remove(kind, Key(*obj.key))

    def _write(self, verb: str, kind: Kind[Any], tree: Tree) -> None:
        self.writes.append(f"{verb} {kind.plural} {tree['metadata'].get('name', '')}")


class FakeSlurm:
    """slurmctld behind the client's interface, with its default ReturnToService."""

    def __init__(self) -> None:
        self.reachable = True
        self.calls: list[str] = []
        self.records: dict[str, Node] = {}
        self.jobs: dict[int, Job] = {}
        self.lost: set[int] = set()  # jobs that slurmctld still believes in, but whose processes are gone
        self.requeued: list[int] = []
        self.silence: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._ahead = 0

    @property
    def time(self) -> int:
        """slurmctld's clock."""
        return _clock.now + self._ahead

    @time.setter
    def time(self, value: int) -> None:
        self._ahead = value - _clock.now

    def submit(self, *nodes: str) -> int:
        """Starts a job there, as the scheduler would; refused on nodes that take none."""
        assert all(self.records[node].idle or "MIXED" in self.records[node].state for node in nodes), self.records
        assert not any(self.records[node].drain for node in nodes), "the scheduler does not use drained nodes"
        number = next(self._numbers)
        since = Number(set=True, number=_clock.tick())
        self.jobs[number] = Job(
            job_id=number, job_state=("RUNNING",), nodes=hostlist.compress(nodes), start_time=since, requeue=True
        )
        self._settle()
        return number

    def finish(self, number: int) -> None:
        self.jobs.pop(number, None)
        self._settle()

    def suspend(self, number: int) -> None:
        """Stops a job: its processes stay, and slurmctld shows its nodes as idle."""
        self.jobs[number] = msgspec.structs.replace(self.jobs[number], job_state=("SUSPENDED",))
        self._settle()

    def has_processes(self, node: str) -> bool:
        return any(node in hostlist.expand(job.nodes) for number, job in self.jobs.items() if number not in self.lost)

    def register(self, name: str, extra: str = "") -> None:
        known = self.records.get(name)
        if known is not None:
            state = tuple(each for each in known.state if each != "NOT_RESPONDING")
            self.records[name] = msgspec.structs.replace(known, state=state)
        else:
            self.records[name] = Node(name=name, state=("IDLE",), features=("gpu",), extra=extra)
        self._settle()

    def stop(self, name: str) -> None:
        """What the preStop hook does."""
        if name in self.records:
            node = self.records[name]
            self._down(name, node.reason if foreign_reason(node) else "slurm-operator: Pod is terminating")

    def ping(self, alive: set[str]) -> None:
        """Nodes that have not answered for a while are taken down by slurmctld itself."""
        self.silence = {name: self.silence.get(name, 0) + 1 for name in self.records if name not in alive}
        for name, rounds in self.silence.items():
            if rounds == SLURMD_TIMEOUT and "NOT_RESPONDING" not in self.records[name].state:
                self._down(name, self.records[name].reason or "Not responding")
                node = self.records[name]
                self.records[name] = msgspec.structs.replace(node, state=(*node.state, "NOT_RESPONDING"))

    def lose(self, name: str) -> None:
        self.lost |= {number for number, job in self.jobs.items() if name in hostlist.expand(job.nodes)}

    def drain(self, name: str, reason: str) -> None:
        """An admin's own act."""
        node = self.records[name]
        self.records[name] = msgspec.structs.replace(node, state=(*node.state, "DRAIN"), reason=reason)

    def resume(self, name: str) -> None:
        """An admin takes the drain back."""
        self._change(name, NodeUpdate.resume())

    async def nodes(self, _since: int | None = None) -> Nodes | None:
        self._ask("nodes")
        return Nodes(nodes=tuple(self.records.values()), last_update=1)

    async def node(self, name: str) -> Node | None:
        self._ask(f"node {name}")
        return self.records.get(name)

    async def update_nodes(self, wanted: Iterable[str], update: NodeUpdate) -> None:
        chosen = list(wanted)
        self._ask(f"update {hostlist.compress(chosen)} {update.state or ''}")
        for name in chosen:
            if name not in self.records:
                raise errors.NotFound(f"no node {name}")
            if update.comment is not None:
                self.records[name] = msgspec.structs.replace(self.records[name], comment=update.comment)
            self._change(name, update)
        self._settle()

    async def delete_nodes(self, wanted: Iterable[str]) -> None:
        chosen = list(wanted)
        self._ask(f"delete {hostlist.compress(chosen)}")
        for name in chosen:
            if name in self.records and self.records[name].busy:
                raise errors.Refused(2016, "Requested nodes are busy")
            self.records.pop(name, None)

    async def jobs_state(self) -> tuple[JobState, ...]:
        self._ask("jobs/state")
        return tuple(JobState(job_id=number, state=job.job_state) for number, job in self.jobs.items())

    async def job(self, number: int) -> Job | None:
        self._ask(f"job {number}")
        return self.jobs.get(number)

    async def requeue_job(self, number: int) -> None:
        self._ask(f"requeue {number}")
        self.requeued.append(number)
        self.finish(number)

    async def cancel_job(self, number: int) -> None:
        self._ask(f"cancel {number}")
        self.finish(number)

    async def now(self) -> int:
        self._ask("diag")
        return self.time

    async def close(self) -> None:
        return

    def _ask(self, what: str) -> None:
        if not self.reachable:
            raise errors.Unreachable("slurmrestd does not answer")
        self.calls.append(what)

    def _change(self, name: str, update: NodeUpdate) -> None:
        node = self.records[name]
        match update.state:
            case ("DRAIN",):
                state = (*(each for each in node.state if each != "DRAIN"), "DRAIN")
                reason = node.reason if update.reason is None else update.reason
                since = Number(set=True, number=self.time)
                self.records[name] = msgspec.structs.replace(node, state=state, reason=reason, reason_changed_at=since)
            case ("RESUME",):
                state = tuple("IDLE" if each == "DOWN" else each for each in node.state if each != "DRAIN")
                self.records[name] = msgspec.structs.replace(node, state=state, reason="")
            case ("UNDRAIN",):
                state = tuple(each for each in node.state if each != "DRAIN")
                self.records[name] = msgspec.structs.replace(node, state=state, reason=update.reason or "")
            case ("DOWN",):
                self._down(name, node.reason if update.reason is None else update.reason)

    def _down(self, name: str, reason: str) -> None:
        for number in [number for number, job in self.jobs.items() if name in hostlist.expand(job.nodes)]:
            self.requeued.append(number)
            self.jobs.pop(number)
            self.lost.discard(number)
        node = self.records[name]
        flags = tuple(each for each in node.state if each == "DRAIN")
        self.records[name] = msgspec.structs.replace(node, state=("DOWN", *flags), reason=reason)
        self._settle()

    def _settle(self) -> None:
        """Base states follow the jobs."""
        shown = [job for job in self.jobs.values() if "SUSPENDED" not in job.job_state]
        busy = {name for job in shown for name in hostlist.expand(job.nodes)}
        for name, node in self.records.items():
            flags = tuple(each for each in node.state if each not in ("IDLE", "MIXED"))
            base = () if "DOWN" in flags else ("MIXED",) if name in busy else ("IDLE",)
            self.records[name] = msgspec.structs.replace(node, state=(*base, *flags))


def _controller() -> Tree:
    metadata = {"name": "main", "namespace": "slurm"}
    return {"metadata": metadata, "spec": {"slurmKeyRef": {"name": "auth", "key": "slurm.key"}}, "status": {}}


def _key(tree: Tree) -> Key:
    return Key(tree["metadata"].get("namespace", ""), tree["metadata"].get("name", ""))


def _stamp() -> str:
    return datetime.fromtimestamp(_clock.tick(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _merge(tree: Tree, patch: Tree) -> None:
    for field, value in patch.items():
        if field == "conditions":
            kept = {each["type"]: each for each in tree.get(field, ())} | {each["type"]: each for each in value}
            tree[field] = [each for each in kept.values() if each.get("$patch") != "delete"]
        elif value is None:
            tree.pop(field, None)
        elif isinstance(value, dict):
            _merge(tree.setdefault(field, {}), value)
        else:
            tree[field] = value


def _operate(tree: Tree, operations: list[Tree]) -> None:
    """A JSON patch, as far as maps are concerned."""
    for each in operations:
        *path, last = (word.replace("~1", "/") for word in each["path"].split("/")[1:])
        inner = tree
        for word in path:
            inner = inner[word]
        match each["op"]:
            case "test":
                assert inner[last] == each["value"]
            case "add":
                inner[last] = each["value"]
            case "remove":
                del inner[last]
