"""The environment of the scale benchmark: fake nodes, a real slurmctld, and the operator as a process of this tree."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import helm, images, releases
from kubeslurm.cli.up.access import local_access
from kubeslurm.local.cluster import network, nodespec
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks

NODESET_KEY = "fake"  # in the values of the chart
NODESET = f"slurm-worker-{NODESET_KEY}"
METRICS = "127.0.0.1:18080"
HEALTH = "127.0.0.1:18081"
READS = ("get", "list")
FETCH = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], timeout=10).read().decode())
"""
_REQUEST = re.compile(r"^kubeslurm_api_requests_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Usage(msgspec.Struct, frozen=True):
    """What the operator has used so far."""

    cpu: float
    writes: int
    pod_writes: int
    requests: int


class Environment:
    """One cluster: a real node for slurmctld and slurmrestd, and one fake node per worker."""

    def __init__(self, name: str, workers: int) -> None:
        self.cluster = Cluster(name)
        self.workers = workers
        self._operator: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start everything but the pods of the NodeSet."""
        with Progress() as progress:
            tags = images.build((images.slurm_images(),), tasks=Tasks(), progress=progress)
            self.cluster.up(
                nodespec.nodes(1, []), fake_nodes=self.workers, progress=progress, timeout=600 + self.workers
            )
            images.push(tags, self.cluster)
            access = local_access(self.cluster)
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
        """Whether the operator's caches are synced."""
        return self._fetch(f"http://{HEALTH}/readyz") != ""

    def usage(self) -> Usage:
        while not (text := self._fetch(f"http://{METRICS}/metrics")):
            assert self.pid  # it runs, but is too busy to respond
        found = [(dict(_LABEL.findall(labels)), int(float(count))) for labels, count in _REQUEST.findall(text)]
        requests = [(labels, count) for labels, count in found if labels["verb"] != "watch"]
        writes = [(labels, count) for labels, count in requests if labels["verb"] not in READS]
        return Usage(
            cpu=cpu_seconds(self.pid),
            writes=sum(count for _, count in writes),
            pod_writes=sum(count for labels, count in writes if labels["kind"] == "Pod"),
            requests=sum(count for _, count in requests),
        )

    def _fetch(self, url: str) -> str:
        """The response of a server in the cluster's network; empty if there is none."""
        return self.cluster.exec_in_network([sys.executable, "-I", "-c", FETCH, url]).stdout

    def peak_memory(self) -> float:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def container_pid(self, pod: str, container: str) -> int:
        """The pid on the host of a process in a container; 0 if there is none."""
        path = f"jsonpath={{.status.containerStatuses[?(@.name=='{container}')].containerID}}"
        namespace = f"--namespace={releases.SLURM_NAMESPACE}"
        text = self.cluster.kubectl(namespace, "get", "pod", pod, f"--output={path}", check=False)
        container_id = text.strip().partition("://")[2]
        for found in Path("/proc").glob("[0-9]*/cgroup"):
            try:
                if container_id and container_id in found.read_text():
                    return int(found.parent.name)
            except OSError:
                continue
        return 0

    def _start_operator(self) -> "subprocess.Popen[bytes]":
        """Start it like its image does, but in the cluster's network and from this tree."""
        home = self.cluster.home
        config = home.run / "operator.kubeconfig"
        config.write_text(self.cluster.kubeconfig.read_text().replace(self.cluster.spec.address, network.BRIDGE_IP))
        init = home.init()
        assert init is not None
        flags = [f"--kubeconfig={config}", f"--namespace={releases.OPERATOR_NAMESPACE}"]
        flags += [f"--metrics-addr={METRICS}", f"--health-addr={HEALTH}"]
        command = ["nsenter", f"--target={init.pid}", "--net", "--", sys.executable, "-m", "kubeslurm.operator"]
        with (home.logs / "operator.log").open("wb") as log:
            return subprocess.Popen([*command, "operator", *flags], stdout=log, stderr=log)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _values(workers: int) -> Tree:
    """Values for one NodeSet on fake nodes, without workers at first."""
    pod_spec = {
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    }
    fake = {"replicas": 0, "podSpec": pod_spec}
    extra = {"MaxNodeCount": workers * 2}
    return {
        "nodesets": {releases.WORKER: {"enabled": False}, NODESET_KEY: fake},
        "controller": {"extraConfMap": extra},
    }
