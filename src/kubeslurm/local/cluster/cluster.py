"""One cluster on this machine, as commands, tests and the rest of the product use it."""

import contextlib
import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kubeslurm.local.cluster import network, nodespec, pki, programs, readiness, state
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.state import Artifacts, ClusterSpec, Home, Launch, Status
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cgroups
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.supervisor import Condition
from kubeslurm.local.images.artifacts import prepare

DEFAULT_NAME = "default"


class Node(msgspec.Struct, frozen=True):
    """A handle on one node of a running cluster."""

    cluster: "Cluster"
    name: str

    @property
    def condition(self) -> Condition:
        """How it is; its process number is the host's."""
        return next(node for node in self.cluster.status().nodes if node.name == self.name)

    def start(self) -> None:
        """Bring the node up again."""
        self.cluster.home.off(self.name).unlink(missing_ok=True)
        self._wait("running")

    def stop(self) -> None:
        """Shut the node down in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Take the node's power away."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        pid = self.condition.pid
        self.cluster.home.off(self.name).touch()  # or it would come back by itself
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self._wait("stopped")

    def _wait(self, wanted: str) -> None:
        deadline = time.monotonic() + 180
        while self.condition.state != wanted:
            if time.monotonic() > deadline:
                log = self.cluster.command("logs init")
                raise LocalError(f"The node {self.name!r} is not {wanted} after three minutes.", f"See `{log}`.")
            time.sleep(0.02)


class Cluster:
    """A cluster by name, running or not."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = name
        self.home = Home(name)

    @property
    def running(self) -> bool:
        return self.home.init() is not None

    @property
    def spec(self) -> ClusterSpec:
        """What the cluster was asked to be."""
        if spec := self.home.spec():
            return spec
        raise LocalError(f"There is no cluster {self.name!r}.", f"Start it with `{self.command('up')}`.")

    @property
    def kubeconfig(self) -> Path:
        """Of mode 0600, for any kubectl, helm or client library on this machine."""
        if not self.home.kubeconfig.exists():
            raise LocalError(f"There is no cluster {self.name!r}.", f"Start it with `{self.command('up')}`.")
        return self.home.kubeconfig

    @property
    def registry(self) -> str:
        """HOST:PORT of the registry, on the host's loopback."""
        return f"{self.spec.address}:{network.REGISTRY_PORT}"

    @property
    def ca(self) -> Path:
        """The authority that signed the registry's and the apiserver's certificate."""
        return self.home.pki / "ca.crt"

    def up(
        self,
        nodes: Sequence[NodeSpec] | None = None,
        *,
        fake_nodes: int | None = None,
        fresh: bool = False,
        progress: Progress | None = None,
        timeout: float = 180.0,
    ) -> bool:
        """Start the cluster, as it was the last time where nothing else is asked for; False when it runs already."""
        progress = progress or Progress()
        with self.home.locked():
            if self.running:
                return False
            self._end()
            spec = self._wish(nodes, fake_nodes)
            if fresh:
                self._forget()
            readiness.check_ports(spec.address)
            readiness.check_watches(len(spec.nodes))
            parts = prepare(progress=progress, kwok=spec.fake_nodes > 0)
            self.home.make()
            pki.ensure(self.home.pki, spec, dt.datetime.now(dt.UTC))
            state.save(self.home.spec_file, spec)
            url = f"https://{spec.address}:{network.API_PORT}"
            config = programs.kubeconfig(self.home.pki, "admin", url, f"kubeslurm-{self.name}")
            state.replace(self.home.kubeconfig, config)
            with progress.step(f"starting the cluster {self.name}") as step, self._launched(spec, parts):
                readiness.wait_until_ready(self.home, spec, step, time.monotonic() + timeout)
        return True

    def down(self, *, purge: bool = False) -> bool:
        """Stop the cluster and leave nothing behind but its state; False when it did not run."""
        if not self.home.path.exists():
            return self._end()
        with self.home.locked():
            was_running = self._end()
            if purge:
                self._forget()
                self.home.path.rmdir()
        return was_running

    def status(self) -> Status:
        """What every component and node is doing."""
        self._init()
        return self.home.status(self.spec)

    def log(self, component: str) -> Path:
        """The log of a component, by its name in `status`."""
        path = self.home.logs / state.log_name(component)
        if not path.exists():
            names = sorted(log.stem.replace(".", "/") for log in self.home.logs.glob("*.log"))
            raise LocalError(f"There is no log of {component!r}.", f"There are: {', '.join(names) or 'none'}.")
        return path

    def node(self, name: str) -> Node:
        """A node by name."""
        names = [node.name for node in self.spec.nodes]
        if name not in names:
            there = ", ".join(names) or "none"
            raise LocalError(f"The cluster {self.name!r} has no node {name!r}.", f"Its nodes are: {there}.")
        return Node(self, name)

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        """Output of kubectl with the cluster's administrator rights."""
        argv = self.kubectl_command(*args)
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise LocalError(f"kubectl {' '.join(args)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def kubectl_command(self, *args: str) -> list[str]:
        """A command line that runs kubectl of the cluster's own version."""
        self._init()
        return [str(self.home.run / "bin/kubectl"), f"--kubeconfig={self.kubeconfig}", *args]

    def fabric_exec(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the host inside the cluster's network, where pods and Services have their addresses."""
        words = ["nsenter", f"--target={self._init()}", "--net", "--", *argv]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def exec_in_node(self, node: str, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the node image inside a node."""
        return subprocess.run([*self.node_command(node), *argv], capture_output=True, text=True, check=False)

    def node_command(self, name: str) -> list[str]:
        """The beginning of a command line that runs something inside a node."""
        pid = self.node(name).condition.pid
        if not pid:
            start = self.command(f"node start {name}")
            raise LocalError(f"The node {name!r} is not running.", f"Start it with `{start}`.")
        variables = [f"{key}={value}" for key, value in programs.ENVIRONMENT.items()]
        return ["nsenter", f"--target={pid}", "--all", "--", "env", "-i", *variables, "TERM=xterm"]

    def command(self, rest: str) -> str:
        """How a user would say it."""
        name = "" if self.name == DEFAULT_NAME else f" --name {self.name}"
        return f"kubeslurm local {rest}{name}"

    def _init(self) -> int:
        if record := self.home.init():
            return record.pid
        raise LocalError(f"The cluster {self.name!r} is not running.", f"Start it with `{self.command('up')}`.")

    def _wish(self, nodes: Sequence[NodeSpec] | None, fake_nodes: int | None) -> ClusterSpec:
        before = self.home.spec()
        if nodes is None:
            nodes = before.nodes if before else nodespec.nodes(3, [])
        if fake_nodes is None:
            fake_nodes = before.fake_nodes if before else 0
        others = [Home(name).spec() for name in state.names()]
        taken = {other.address for other in others if other}
        address = before.address if before else state.address_for(self.home.path, taken)
        return ClusterSpec(self.name, address, tuple(nodes), fake_nodes)

    @contextlib.contextmanager
    def _launched(self, spec: ClusterSpec, parts: Artifacts) -> Iterator[None]:
        """The cluster starts here, stays when the block ends well, and is gone when it does not."""
        state.save(self.home.run / "launch.json", Launch(spec, parts, self._drop_disks(spec)))
        (self.home.run / "bin").mkdir()
        (self.home.run / "bin/kubectl").symlink_to(parts.kubernetes)
        argv = [sys.executable, "-m", "kubeslurm.local.cluster.init", self.name]
        with (
            (self.home.logs / "init.log").open("a") as log,
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log) as starter,
        ):
            try:
                starter.wait()
                yield
                starter.communicate(b"+")
            except BaseException:
                starter.kill()
                self._end()
                raise

    def _drop_disks(self, spec: ClusterSpec) -> tuple[str, ...]:
        """Remove disks and logs of nodes that are no longer asked for, and say whose they were."""
        wanted = {node.name for node in spec.nodes}
        former = [disk for disk in self.home.nodes.glob("*") if disk.name not in wanted]
        for disk in former:
            shutil.rmtree(disk)
            for log in self.home.logs.glob(f"{disk.name}.*"):
                log.unlink()
        return tuple(disk.name for disk in former)

    def _end(self) -> bool:
        """End whatever runs, and remove what namespaces do not take along; says whether anything ran.

        One signal to the init ends every process, and with them every mount and link. Should its record be lost, its
        processes are still found in the cluster's control group.
        """
        if record := self.home.init():
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGKILL)
            while state.started(record.pid) == record.started:
                time.sleep(0.01)
        layout = cgroups.detect()
        orphans = cgroups.kill(layout, self.home.group)
        if left := cgroups.remove(layout, self.home.group, patience=60):
            raise LocalError(
                f"Control groups of the cluster {self.name!r} are still in use: {left[0]}.",
                "End the processes in it and try again.",
            )
        shutil.rmtree(self.home.run, ignore_errors=True)
        return orphans or record is not None

    def _forget(self) -> None:
        for entry in self.home.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
