"""Machines below the pods of a world in memory: what kubelets and slurmd do, and what the API server hears of it."""

import copy

import msgspec

from kubeslurm.api.kinds import NODE, POD
from kubeslurm.api.meta import Tree
from kubeslurm.kube.objects import decoder_of, key_of_tree
from kubeslurm.slurm.rest.models import Node
from tests.support.clock import stamp
from tests.support.fake_kube import FakeKube
from tests.support.fake_slurm import FakeSlurm

WAITING = {"phase": "Pending", "containerStatuses": [{"name": "slurmd", "state": {"waiting": {}}}]}


class Machines:
    """One machine per Kubernetes node, with its own host name and address."""

    def __init__(self, kube: FakeKube, slurm: FakeSlurm, domain: str) -> None:
        kube.has_processes = self.has_processes
        self._kube = kube
        self._slurm = slurm
        self._domain = domain
        self.takes_name = True  # whether the image uses SLURMD_NODENAME
        self.cut_off: set[str] = set()  # machines whose kubelet cannot reach the API server
        self.registered: dict[str, str] = {}  # uid of a pod -> the Slurm node that its slurmd is
        self._running: dict[str, Tree] = {}  # uid of a pod -> the status that its kubelet has of it

    def add(self, number: int) -> None:
        """The Kubernetes node of a machine appears, with the machine's full name."""
        self._kube.put(NODE, {"metadata": {"name": f"host-{number}{self._domain}"}, "spec": {}, "status": {}})

    def has_processes(self, pod: Tree) -> bool:
        """Whether a job runs in the pod."""
        name = self.registered.get(pod["metadata"]["uid"], "")
        return bool(name) and self._slurm.has_processes(name)

    def alive(self) -> set[str]:
        """The Slurm nodes whose slurmd answers."""
        return {name for pod in self._kube.pods() if (name := self.registered.get(pod["metadata"]["uid"]))}

    def work(self) -> None:
        """Schedules and starts pods, and ends those that are terminating."""
        for pod in self._kube.pods():
            if pod["spec"].get("nodeName", "") in self.cut_off:
                continue
            if pod["metadata"].get("deletionTimestamp"):
                self._stop(pod)
            elif not pod["spec"].get("nodeName") and (host := self._place(pod)):
                self.start(pod, host)

    def start(self, pod: Tree, host: str, *, container: str = "containerd://1") -> None:
        """slurmd of a pod starts and registers; a kubelet that is cut off cannot say so."""
        tree = copy.deepcopy(pod)
        tree["spec"]["nodeName"] = host
        self._running[tree["metadata"]["uid"]] = _running(container, _address(host))
        self._report(tree)
        name = self.registered[tree["metadata"]["uid"]] = self._node_name(tree)
        text = " ".join(each for box in tree["spec"].get("containers", ()) for each in box.get("args", ()))
        features = text.partition("Features=")[2].partition("'")[0].split(",")
        extra = text.partition(" --extra ")[2]
        self._slurm.register(name, Node(name=name, features=tuple(features), extra=extra, address=_address(host)))

    def reconnect(self, host: str) -> None:
        """The kubelet reaches the API server again, and reports."""
        self.cut_off.discard(host)
        for pod in self._kube.pods():
            if pod["spec"].get("nodeName") == host and pod["status"]["phase"] == "Pending":
                self._report(copy.deepcopy(pod))

    def _report(self, pod: Tree) -> None:
        """Writes what the API server hears of a pod: of a kubelet that is cut off, that slurmd has not started."""
        kept = [each for each in pod.get("status", {}).get("conditions", ()) if each["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp()}
        if pod["spec"]["nodeName"] in self.cut_off:
            pod["status"] = WAITING | {"conditions": kept}
        else:
            pod["status"] = self._running[pod["metadata"]["uid"]] | {"conditions": [*kept, ready]}
        self._kube.put(POD, pod)

    def register_again(self) -> None:
        """Every slurmd registers, as one does that is restarted beside its jobs."""
        for name in self.alive() - self._slurm.records.keys():
            self._slurm.register(name)

    def _stop(self, pod: Tree) -> None:
        if name := self.registered.get(pod["metadata"]["uid"]):
            self._slurm.stop(name)
        self._kube.remove(POD, key_of_tree(pod))

    def _place(self, pod: Tree) -> str:
        """A node without a worker, or the only one that the pod may run on."""
        target = decoder_of(POD).decode(msgspec.json.encode(pod)).target_node
        taken = {each["spec"].get("nodeName") for each in self._kube.pods()}
        nodes = [key.name for plural, key in self._kube.trees if plural == NODE.plural]
        return next((name for name in nodes if name not in taken and target in ("", name)), "")

    def _node_name(self, pod: Tree) -> str:
        """What the entry point of the image registers as."""
        variables = {each["name"]: each for box in pod["spec"].get("containers", ()) for each in box.get("env", ())}
        told = variables.get("SLURMD_NODENAME") if self.takes_name else None
        if told:
            return str(told.get("value") or pod["spec"]["nodeName"])
        return str(pod["spec"]["nodeName"] if pod["spec"].get("hostNetwork") else pod["spec"]["hostname"])


def _address(host: str) -> str:
    return f"10.0.0.{host.removeprefix('host-').partition('.')[0]}"


def _running(container: str, address: str) -> Tree:
    state = {"running": {"startedAt": stamp()}}
    status = {"name": "slurmd", "ready": True, "started": True, "containerID": container, "state": state}
    return {"phase": "Running", "podIP": address, "containerStatuses": [status]}
