"""The ground of the scale benchmark: kwok's nodes, a real slurmctld, and the operator as a process that can be read."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import helm, recipes, releases
from kubeslurm.cli.up.product import access_to
from kubeslurm.local.cluster import network, nodespec
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import build as images

KEY = "fake"
SET = f"slurm-worker-{KEY}"
METRICS = "127.0.0.1:18080"
HEALTH = "127.0.0.1:18081"
READS = ("get", "list")
ASK = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], timeout=10).read().decode())
"""
_REQUEST = re.compile(r"^kubeslurm_api_requests_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Usage(msgspec.Struct, frozen=True):
    """What the operator has used up so far."""

    cpu: float
    writes: int
    pod_writes: int
    requests: int


class Ground:
    """One cluster: a real node for slurmctld and slurmrestd, and as many pretended ones as there are workers."""

    def __init__(self, name: str, workers: int) -> None:
        self.cluster = Cluster(name)
        self.workers = workers
        self._operator: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Starts everything but the NodeSet's pods."""
        with Progress() as progress:
            tags = _slurm_images(progress)
            self.cluster.up(
                nodespec.nodes(1, []), fake_nodes=self.workers, progress=progress, timeout=600 + self.workers
            )
            recipes.push(tags, self.cluster)
            access = access_to(self.cluster)
            helm.install(access, releases.crds())
            with progress.step("install slurm"):
                helm.install(access, releases.slurm(tags, _values(self.workers)))
        self._operator = self._start_operator()

    def down(self, *, keep: bool) -> None:
        if self._operator is not None:
            self._operator.terminate()
            self._operator.wait(timeout=60)
        if not keep:
            self.cluster.down(purge=True)

    @property
    def pid(self) -> int:
        assert self._operator is not None
        assert self._operator.poll() is None, f"the operator ended; see {self.cluster.log('operator')}"
        return self._operator.pid

    def ready(self) -> bool:
        """Whether the operator has seen everything there is."""
        return self._asked(f"http://{HEALTH}/readyz") != ""

    def usage(self) -> Usage:
        while not (text := self._asked(f"http://{METRICS}/metrics")):
            assert self.pid  # it is alive, and merely has no time for an answer
        found = [(dict(_LABEL.findall(labels)), int(float(count))) for labels, count in _REQUEST.findall(text)]
        asked = [(labels, count) for labels, count in found if labels["verb"] != "watch"]
        writes = [(labels, count) for labels, count in asked if labels["verb"] not in READS]
        return Usage(
            cpu=cpu_seconds(self.pid),
            writes=sum(count for _, count in writes),
            pod_writes=sum(count for labels, count in writes if labels["kind"] == "Pod"),
            requests=sum(count for _, count in asked),
        )

    def _asked(self, url: str) -> str:
        """The answer of a server in the cluster's network; empty when it does not give one."""
        return self.cluster.fabric_exec([sys.executable, "-I", "-c", ASK, url]).stdout

    def peak_memory(self) -> float:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def container_pid(self, pod: str, container: str) -> int:
        """A process of a container, as the machine sees it."""
        path = f"jsonpath={{.status.containerStatuses[?(@.name=='{container}')].containerID}}"
        where = f"--namespace={releases.SLURM_NAMESPACE}"
        text = self.cluster.kubectl(where, "get", "pod", pod, f"--output={path}", check=False)
        number = text.strip().partition("://")[2]
        for found in Path("/proc").glob("[0-9]*/cgroup"):
            try:
                if number and number in found.read_text():
                    return int(found.parent.name)
            except OSError:
                continue
        return 0

    def _start_operator(self) -> "subprocess.Popen[bytes]":
        """As its image starts it, but in the cluster's network and from this tree."""
        home = self.cluster.home
        config = home.run / "operator.kubeconfig"
        config.write_text(self.cluster.kubeconfig.read_text().replace(self.cluster.spec.address, network.FABRIC))
        init = home.init()
        assert init is not None
        flags = [f"--kubeconfig={config}", f"--namespace={releases.OPERATOR_NAMESPACE}"]
        flags += [f"--metrics-addr={METRICS}", f"--health-addr={HEALTH}"]
        words = ["nsenter", f"--target={init.pid}", "--net", "--", sys.executable, "-m", "kubeslurm.operator"]
        with (home.logs / "operator.log").open("wb") as log:
            return subprocess.Popen([*words, "operator", *flags], stdout=log, stderr=log)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _slurm_images(progress: Progress) -> dict[str, str]:
    """Slurm's images alone: the operator runs from the tree."""
    part = next(part for part in recipes.parts() if "slurmctld" in part.names)
    present = {(image.name, image.tag) for image in images.list()}
    for name in part.names:
        if (name, part.tag) not in present:
            recipe = images.Recipe(name, part.tag, part.context, target=name, containerfile=part.containerfile)
            images.make(recipe, tasks=Tasks(), progress=progress)
    return dict.fromkeys(part.names, part.tag)


def _values(workers: int) -> Tree:
    """One NodeSet on kwok's nodes, empty at first."""
    place = {
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    }
    fake = {"replicas": 0, "podSpec": place}
    extra = {"MaxNodeCount": workers * 2}
    return {
        "nodesets": {releases.WORKER: {"enabled": False}, KEY: fake},
        "controller": {"extraConfMap": extra},
    }
