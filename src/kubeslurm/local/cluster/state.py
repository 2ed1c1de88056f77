"""The files that a cluster keeps on disk. Its processes and the commands communicate only through these files."""

import contextlib
import hashlib
import ipaddress
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kubeslurm.local.cluster.nodespec import NodeSpec, check_name
from kubeslurm.local.host import lock
from kubeslurm.local.host.files import load
from kubeslurm.local.host.supervisor import ComponentStatus


class ClusterSpec(msgspec.Struct, frozen=True):
    """What `up` was asked for. It is kept, so that the next `up` starts the same cluster."""

    name: str
    address: str  # the cluster's own loopback address on the host
    nodes: tuple[NodeSpec, ...]
    fake_nodes: int = 0


class Artifacts(msgspec.Struct, frozen=True):
    """Built files that every cluster uses, in the user's cache directory."""

    kubernetes: Path  # the multi-call binary: its name decides whether it is kube-apiserver, kubelet, kubectl, ...
    node_root: Path  # root file system of the node image, the lower layer of every node's overlay
    pause: Path  # OCI archive of localhost/pause:1, for `ctr images import`
    kwok: Path | None = None  # directory with `kwok` and `stages.yaml`


class Launch(msgspec.Struct, frozen=True):
    """What the cluster's init is started with."""

    spec: ClusterSpec
    artifacts: Artifacts
    former_nodes: tuple[str, ...] = ()  # no longer asked for; their Node objects are deleted


class Readiness(msgspec.Struct, frozen=True):
    """Which nodes are ready; `up` waits for it and `status` shows it."""

    nodes_ready: list[str] = []
    fake_nodes_ready: int = 0


class InitRecord(msgspec.Struct, frozen=True):
    """The cluster's init in the pid namespace of the host; the start time detects a reused pid."""

    pid: int
    started: int


class NodeReport(msgspec.Struct, frozen=True):
    """What the init of a node reports."""

    pid: int  # of the node's init, in the pid namespace of the host
    components: list[ComponentStatus]


class Status(msgspec.Struct, frozen=True):
    """State of all nodes, with their pids on the host, and of all programs of the control plane and the nodes."""

    components: list[ComponentStatus]
    nodes: list[ComponentStatus]


class Home:
    """The directory of one cluster."""

    def __init__(self, name: str) -> None:
        self.name = check_name(name, "cluster")
        self._locked = False
        self.path = root() / name
        self.group = f"{name}-{_digest(self.path).hex()[:8]}"  # cgroup; other users may use the same name
        self.spec_file = self.path / "cluster.json"
        self.kubeconfig = self.path / "kubeconfig"
        self.pki = self.path / "pki"
        self.etcd = self.path / "etcd"
        self.registry = self.path / "registry"
        self.volumes = self.path / "volumes"
        self.nodes = self.path / "nodes"
        self.logs = self.path / "logs"
        self.run = self.path / "run"  # exists only while the cluster runs
        self.readiness_file = self.run / "reached.json"
        self.serving = self.run / "serving"  # exists once the API server serves and has the initial objects

    def node(self, name: str) -> Path:
        """The directory that holds the disk of one node."""
        return self.nodes / name

    def stop_file(self, node: str) -> Path:
        """The node is not started while this file exists."""
        return self.run / f"{node}.off"

    def make(self) -> None:
        """Create missing directories; only the user may read them."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for directory in (self.pki, self.etcd, self.registry, self.volumes, self.logs, self.run):
            directory.mkdir(exist_ok=True)
        self.etcd.chmod(0o700)

    def delete_state(self) -> None:
        """Delete everything but the directory itself."""
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def delete_old_disks(self, spec: ClusterSpec) -> tuple[str, ...]:
        """Delete disks and logs of nodes that are no longer asked for, and return the names of these nodes."""
        names = {node.name for node in spec.nodes}
        old = [disk for disk in self.nodes.glob("*") if disk.name not in names]
        for disk in old:
            shutil.rmtree(disk)
            for log in self.logs.glob(f"{disk.name}.*"):
                log.unlink()
        return tuple(disk.name for disk in old)

    def spec(self) -> ClusterSpec | None:
        return load(self.spec_file, ClusterSpec)

    def readiness(self) -> Readiness:
        """Which nodes are ready."""
        return load(self.readiness_file, Readiness) or Readiness()

    def status(self, spec: ClusterSpec) -> Status:
        """What the init of the cluster and those of its nodes reported last."""
        names = {node.name for node in spec.nodes}
        reported = load(self.run / "status.json", list[ComponentStatus]) or []
        components = [status for status in reported if status.name not in names]
        nodes = [status for status in reported if status.name in names]
        for node in nodes:
            report = load(self.run / f"{node.name}.json", NodeReport) if node.pid else None
            node.pid = report.pid if report else 0
            node.state = "starting" if node.state == "running" and not report else node.state
            components += report.components if report else []
        return Status(components, nodes)

    def launch(self) -> Launch:
        """What the running cluster was started with."""
        found = load(self.run / "launch.json", Launch)
        assert found is not None, "written by `up` before anything starts"  # noqa: S101
        return found

    def init(self) -> InitRecord | None:
        """The running init; None if the cluster does not run."""
        record = load(self.run / "init.json", InitRecord)
        return record if record and start_time(record.pid) == record.started else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the cluster: one `up` or `down` at a time. Whoever holds it may take it again."""
        if self._locked:
            yield
            return
        with lock.exclusive(self.path, f"the cluster {self.name!r}"):
            self._locked = True
            try:
                yield
            finally:
                self._locked = False


def root() -> Path:
    """The directory of all clusters of this user."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "kubeslurm" / "local"


def names() -> list[str]:
    """Names of all clusters, running or not."""
    return sorted(path.parent.name for path in root().glob("*/cluster.json"))


def address_for(home: Path, taken: set[str]) -> str:
    """The loopback address of a cluster: derived from its path, so that it is stable, or the next free one."""
    number = int.from_bytes(_digest(home)[:3], "big") % (2**22 - 2) + 1
    base = int(ipaddress.IPv4Address("127.64.0.0"))
    while (address := str(ipaddress.IPv4Address(base + number))) in taken:
        number = number % (2**22 - 2) + 1
    return address


def log_name(component: str) -> str:
    """File name of a component's log."""
    return f"{component.replace('/', '.')}.log"


def _digest(path: Path) -> bytes:
    return hashlib.sha256(os.fsencode(path)).digest()


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
