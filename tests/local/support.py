"""Helpers for tests of the local cluster: waiting, manifests, and the state of the whole machine."""

import contextlib
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from kubeslurm.local.cluster import state
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cgroups
from tests.support import waiting
from tests.support.kubernetes import Kubernetes, run

Tree = dict[str, Any]
BOX = "localhost/testbox:1"
# A command that fails is retried: the API server may be starting.
wait_for = partial(waiting.wait_for, within=300.0, every=0.1, despite=LocalError)


class Namespace:
    """The namespace of one test."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.name, *args, stdin=stdin)

    def apply(self, *trees: Tree) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(trees)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def get(self, *args: str) -> Tree:
        tree: Tree = json.loads(self.kubectl("get", *args, "-o", "json"))
        return tree

    def wait(self, what: str, condition: str, timeout: str = "300s") -> None:
        self.kubectl("wait", f"--for={condition}", what, f"--timeout={timeout}")

    def sh(self, pod: str, script: str) -> str:
        return self.kubectl("exec", pod, "--", "sh", "-c", script).strip()

    def start(self, *pods: Tree) -> None:
        """Apply pods and wait until they are ready."""
        self.apply(*pods)
        for tree in pods:
            self.wait(f"pod/{tree['metadata']['name']}", "condition=Ready")


def evidence(cluster: Kubernetes) -> str:
    """What a cluster shows of itself: its components, nodes, pods and events."""
    try:
        status = cluster.status()
        every = (*status.nodes, *status.components)
        parts = [f"{each.name}: {each.state}, {each.restarts} restarts, last exit {each.last_exit}" for each in every]
        for words in (("get", "nodes,pods", "--output=wide"), ("get", "events", "--sort-by=.lastTimestamp")):
            done = run(cluster.kubectl_command(*words, "--all-namespaces", "--request-timeout=20s"), deadline=60)
            parts += [f"$ kubectl {' '.join(words)}", *(done.stdout + done.stderr).splitlines()[-60:]]
    except (AssertionError, LocalError, OSError) as error:  # the cluster may be what is broken
        return str(error)
    return "\n".join(parts)


def pod(name: str, script: str = "sleep 2147483647", *, node: str = "", **spec: Any) -> Tree:
    """A pod that runs a script, with no grace period. `container` adds fields to its container."""
    container = {"name": "box", "image": BOX, "command": ["sh", "-c", script], **spec.pop("container", {})}
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **selector, **spec},
    }


def service(name: str, **spec: Any) -> Tree:
    """A Service for the pods labelled with its name, port 80 to 8080."""
    ports = [{"port": 80, "targetPort": 8080}]
    tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    return {**tree, "spec": {"selector": {"app": name}, "ports": ports, **spec}}


def web(name: str, *, node: str = "") -> Tree:
    """A pod that answers HTTP on port 8080 with its own name, as soon as it is ready."""
    script = f"mkdir /tmp/www; echo {name} > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www"
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 60}
    return pod(name, script, node=node, container={"readinessProbe": probe})


def claim(name: str, mode: str, storage_class: str | None = None) -> Tree:
    """A PersistentVolumeClaim."""
    spec: Tree = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def mounts() -> set[str]:
    """Mount points in this mount namespace that may be ours."""
    points = {line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return set(filter(OURS.search, points))


def links() -> set[str]:
    """Network links of this machine."""
    return set(os.listdir("/sys/class/net"))


# Where installed programs and services write files.
SYSTEM_DIRECTORIES = ("/etc", "/run", "/var/lib")
# Files of other programs, which may change during a test, are ignored.
OURS = re.compile(r"kube|container|runc|cni|etcd|coredns|registry|netns")
SETTINGS = (
    "net/ipv4/ip_forward",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
)


def files() -> set[str]:
    """Files outside the state directory that may be ours, by their name; not those of other runs of these tests."""
    walks = (walk for root in SYSTEM_DIRECTORIES for walk in os.walk(root))
    found = {f"{folder}/{name}" for folder, folders, names in walks for name in (*folders, *names)}
    others = {name for name in os.listdir("/tmp") if not name.startswith("kubeslurm-")}  # noqa: S108
    return set(filter(OURS.search, found | others))


def machine() -> tuple[set[str], set[str], set[str]]:
    """What a cluster could change on its machine: mount points, network links, kernel settings."""
    return mounts(), links(), {f"{name}={value}" for name, value in kernel_settings().items()}


def wait_until_machine_is_as(before: tuple[set[str], set[str], set[str]]) -> None:
    """Until nothing is there that was not there before: what others do on this machine may come and go."""

    def added() -> list[str]:
        return [name for then, now in zip(before, machine(), strict=True) for name in now - then]

    wait_for("nothing to be added to the machine", lambda: not added(), story=lambda: f"added: {added()}")


def kernel_settings() -> dict[str, str]:
    """Kernel settings that a kubelet usually changes."""
    return {name: Path("/proc/sys", name).read_text() for name in SETTINGS}


def listeners(cluster: Cluster) -> set[tuple[str, int]]:
    """Where a cluster's processes listen for TCP on the host: address as in /proc/net/tcp, and port."""
    ours = {inode for pid, _ in processes(cluster) for inode in _sockets(pid)}
    tables = (Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = [row.split() for table in tables for row in table]
    found = [row[1].split(":") for row in rows if row[3] == "0A" and row[9] in ours]
    return {(address, int(port, 16)) for address, port in found}


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):  # the process has exited
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # the file is closed
                found.add(os.readlink(f"/proc/{pid}/fd/{name}").removeprefix("socket:[").removesuffix("]"))
    return found


def control_groups(cluster: Cluster) -> list[Path]:
    """Control groups of a cluster, in every hierarchy."""
    return [directory for directory in cgroups.detect().directories(cluster.home.group) if directory.exists()]


def processes(cluster: Cluster) -> set[tuple[int, int]]:
    """Every process of a cluster, with its start time."""
    pids: set[int] = set()
    for directory in control_groups(cluster):
        for folder, _, _ in os.walk(directory):
            with contextlib.suppress(OSError):  # the group of a pod that just ended
                pids |= set(map(int, Path(folder, "cgroup.procs").read_text().split()))
    return {(pid, started) for pid in pids if (started := state.start_time(pid))}


def any_alive(found: set[tuple[int, int]]) -> bool:
    """Whether any of these processes still runs."""
    return any(state.start_time(pid) == started for pid, started in found)
