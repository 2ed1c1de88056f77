"""What a cluster keeps on disk, and where. Its parts speak to each other by these files alone."""

import contextlib
import fcntl
import hashlib
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kubeslurm.local.cluster.nodespec import NodeSpec, check_name
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.supervisor import Condition

T = TypeVar("T")


class ClusterSpec(msgspec.Struct, frozen=True):
    """What `up` was asked for; kept, so that the next `up` brings back the same."""

    name: str
    address: str  # the cluster's own loopback address on the host
    nodes: tuple[NodeSpec, ...]
    fake_nodes: int = 0


class Artifacts(msgspec.Struct, frozen=True):
    """What every cluster is made of, in the user's cache directory."""

    kubernetes: Path  # the multi-call binary: kube-apiserver, kubelet, kubectl, coredns, ... by the name it is called
    node_root: Path  # directory tree of the node image, the lower layer of every node's overlay
    pause: Path  # OCI archive of localhost/pause:1, for `ctr images import`
    kwok: Path | None = None  # directory with `kwok` and `stages.yaml`


class Launch(msgspec.Struct, frozen=True):
    """What the cluster's init needs to know: the wish, and where the parts are."""

    spec: ClusterSpec
    parts: Artifacts
    former_nodes: tuple[str, ...] = ()  # of an earlier wish; their objects go


class Reached(msgspec.Struct, frozen=True):
    """How far Kubernetes in the cluster is; `up` waits for it and `status` shows it."""

    nodes_ready: list[str] = []
    fake_nodes_ready: int = 0


class InitRecord(msgspec.Struct, frozen=True):
    """The cluster's init as the host sees it; the start time tells it from a later process of the same number."""

    pid: int
    started: int


class NodeReport(msgspec.Struct, frozen=True):
    """What a node says of itself."""

    pid: int  # its first process, as the host numbers it
    components: list[Condition]


class Status(msgspec.Struct, frozen=True):
    """Nodes with their process numbers on the host, and the programs that run in them and beside them."""

    components: list[Condition]
    nodes: list[Condition]


class Home:
    """The directory of one cluster."""

    def __init__(self, name: str) -> None:
        self.name = check_name(name, "cluster")
        self.path = root() / name
        self.group = f"{name}-{_digest(self.path).hex()[:8]}"  # its cgroup; another user may have the same name
        self.spec_file = self.path / "cluster.json"
        self.kubeconfig = self.path / "kubeconfig"
        self.pki = self.path / "pki"
        self.etcd = self.path / "etcd"
        self.registry = self.path / "registry"
        self.volumes = self.path / "volumes"
        self.nodes = self.path / "nodes"
        self.logs = self.path / "logs"
        self.run = self.path / "run"  # only while the cluster runs
        self.serving = self.run / "serving"  # there as soon as the apiserver is, with all that others need from it

    def node(self, name: str) -> Path:
        """The disk of one node."""
        return self.nodes / name

    def off(self, node: str) -> Path:
        """While this file is there, the node stays down."""
        return self.run / f"{node}.off"

    def make(self) -> None:
        """Create what is missing; nobody else may look inside."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for directory in (self.pki, self.etcd, self.registry, self.volumes, self.logs, self.run):
            directory.mkdir(exist_ok=True)
        self.etcd.chmod(0o700)

    def spec(self) -> ClusterSpec | None:
        return load(self.spec_file, ClusterSpec)

    def reached(self) -> Reached:
        """How far Kubernetes in the cluster is."""
        return load(self.run / "reached.json", Reached) or Reached()

    def status(self, spec: ClusterSpec) -> Status:
        """What the cluster's init and its nodes wrote down last."""
        names = {node.name for node in spec.nodes}
        seen = load(self.run / "status.json", list[Condition]) or []
        components = [condition for condition in seen if condition.name not in names]
        nodes = [condition for condition in seen if condition.name in names]
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
        """The running init, if there is one."""
        record = load(self.run / "init.json", InitRecord)
        return record if record and started(record.pid) == record.started else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One `up` or `down` at a time."""
        self.path.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise LocalError(
                f"Another command is starting or stopping the cluster {self.name!r} right now.", "Wait for it to end."
            ) from None
        finally:
            os.close(fd)


def root() -> Path:
    """Where all clusters of this user live."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "kubeslurm" / "local"


def names() -> list[str]:
    """Every cluster there is, running or not."""
    return sorted(path.parent.name for path in root().glob("*/cluster.json"))


def address_for(home: Path, taken: set[str]) -> str:
    """A loopback address of its own: from the path, so that it stays the same, and the next free one on a clash."""
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


def started(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 when it is not there or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def load(path: Path, kind: type[T]) -> T | None:
    """What was saved as JSON; None when it is missing or was written by another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind, dec_hook=lambda _, text: Path(text))
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def save(path: Path, value: object) -> None:
    """Write as JSON, all or nothing."""
    replace(path, msgspec.json.encode(value, enc_hook=str))


def replace(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Write a file, all or nothing, with its mode from the first moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
