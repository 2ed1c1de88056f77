"""Starts, stops and controls one cluster on this machine; used by the commands, by `kubeslurm up` and by tests."""

import contextlib
import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from kubeslurm.local.cluster import network, nodespec, pki, programs, readiness, state
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.cluster.state import Artifacts, ClusterSpec, Home, Launch, Status
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cgroups, files
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.supervisor import ComponentStatus
from kubeslurm.local.images.artifacts import prepare

DEFAULT_NAME = "default"
INIT = "kubeslurm.local.cluster.init"


class Node(msgspec.Struct, frozen=True):
    """One node of a running cluster."""

    cluster: "Cluster"
    name: str

    @property
    def status(self) -> ComponentStatus:
        """The state of the node, with its pid on the host."""
        return next(node for node in self.cluster.status().nodes if node.name == self.name)

    def start(self) -> None:
        """Start the node again."""
        self.cluster.home.stop_file(self.name).unlink(missing_ok=True)
        self._wait("running")

    def stop(self) -> None:
        """Shut the node down: its pods get SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the node at once, like a power failure."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        pid = self.status.pid
        self.cluster.home.stop_file(self.name).touch()  # or it would be started again
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self._wait("stopped")

    def _wait(self, state: str) -> None:
        deadline = time.monotonic() + 180
        while self.status.state != state:
            if time.monotonic() > deadline:
                log = self.cluster.command("logs init")
                raise LocalError(f"The node {self.name!r} is not {state} after three minutes.", f"See `{log}`.")
            time.sleep(0.02)


class Cluster:
    """A cluster, running or not."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = name
        self.home = Home(name)

    @property
    def running(self) -> bool:
        return self.home.init() is not None

    @property
    def spec(self) -> ClusterSpec:
        """What the cluster was started with."""
        if spec := self.home.spec():
            return spec
        raise LocalError(f"There is no cluster {self.name!r}.", f"Start it with `{self.command('up')}`.")

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        if not self.home.kubeconfig.exists():
            raise LocalError(f"There is no cluster {self.name!r}.", f"Start it with `{self.command('up')}`.")
        return self.home.kubeconfig

    @property
    def registry(self) -> str:
        """HOST:PORT of the registry, on a loopback address of the host."""
        return f"{self.spec.address}:{network.REGISTRY_PORT}"

    @property
    def ca(self) -> Path:
        """The CA certificate of the API server and the registry."""
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
        """Start the cluster, by default with the nodes of the last time; returns False if it is running already."""
        progress = progress or Progress()
        with self.home.locked():
            if self.running:
                self._restore_files()
                return False
            self._kill()
            spec = self._new_spec(nodes, fake_nodes)
            if fresh:
                self.home.delete_state()
            readiness.check_ports(spec.address)
            readiness.check_inotify(len(spec.nodes))
            artifacts = prepare(progress=progress, kwok=spec.fake_nodes > 0)
            self.home.make()
            pki.ensure(self.home.pki, spec, dt.datetime.now(dt.UTC))
            self._write_files(spec)
            with progress.step(f"starting the cluster {self.name}") as step, self._launched(spec, artifacts):
                readiness.wait_until_ready(self.home, spec, step, time.monotonic() + timeout)
        return True

    def down(self, *, purge: bool = False, before: Callable[[], None] = lambda: None) -> bool:
        """Stop the cluster, after `before` if its state is to be kept; returns False if it was not running."""
        if not self.home.path.exists():
            return self._kill()
        with self.home.locked():
            if self.running and not purge:
                before()
            was_running = self._kill()
            if purge:
                self.home.delete_state()
                self.home.path.rmdir()
        return was_running

    def status(self) -> Status:
        """State of all components and nodes."""
        self._init_pid()
        return self.home.status(self.spec)

    def host_pid(self, component: str) -> int:
        """The pid on the host of a component, by its name in `status`; 0 if it has no process."""
        pid = next(each.pid for each in self.status().components if each.name == component)
        node, in_node, _ = component.partition("/")
        parent = self.node(node).status.pid if in_node else self._init_pid()
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with contextlib.suppress(OSError):  # the child has exited
                pids = Path(f"/proc/{child}/status").read_text().split("NSpid:")[1].splitlines()[0].split()
                if int(pids[-1]) == pid:
                    return int(child)
        return 0

    def log(self, component: str) -> Path:
        """The log of a component, by its name in `status`."""
        path = self.home.logs / state.log_name(component)
        if not path.exists():
            names = sorted(log.stem.replace(".", "/") for log in self.home.logs.glob("*.log"))
            raise LocalError(f"There is no log of {component!r}.", f"Logs: {', '.join(names) or 'none'}.")
        return path

    def node(self, name: str) -> Node:
        """A node by name."""
        names = [node.name for node in self.spec.nodes]
        if name not in names:
            known = ", ".join(names) or "none"
            raise LocalError(f"The cluster {self.name!r} has no node {name!r}.", f"Its nodes are: {known}.")
        return Node(self, name)

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl as the cluster's administrator and return its output."""
        argv = self.kubectl_command(*args)
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise LocalError(f"kubectl {' '.join(args)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def kubectl_command(self, *args: str) -> list[str]:
        """A command line for kubectl, in the version of the cluster."""
        self._init_pid()
        return [str(self.home.run / "bin/kubectl"), f"--kubeconfig={self.kubeconfig}", *args]

    def exec_in_network(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the host in the cluster's network, which has the addresses of pods and Services."""
        command = ["nsenter", f"--target={self._init_pid()}", "--net", "--", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def exec_in_node(self, node: str, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the node image in a node."""
        return subprocess.run([*self.node_command(node), *argv], capture_output=True, text=True, check=False)

    def node_command(self, name: str) -> list[str]:
        """The start of a command line that runs a command in a node."""
        pid = self.node(name).status.pid
        if not pid:
            start = self.command(f"node start {name}")
            raise LocalError(f"The node {name!r} is not running.", f"Start it with `{start}`.")
        variables = [f"{key}={value}" for key, value in programs.ENVIRONMENT.items()]
        return ["nsenter", f"--target={pid}", "--all", "--", "env", "-i", *variables, "TERM=xterm"]

    def command(self, args: str) -> str:
        """The `kubeslurm local` command line for this cluster, to show to a user."""
        name = "" if self.name == DEFAULT_NAME else f" --name {self.name}"
        return f"kubeslurm local {args}{name}"

    def _init_pid(self) -> int:
        if record := self.home.init():
            return record.pid
        raise LocalError(f"The cluster {self.name!r} is not running.", f"Start it with `{self.command('up')}`.")

    def _new_spec(self, nodes: Sequence[NodeSpec] | None, fake_nodes: int | None) -> ClusterSpec:
        last = self.home.spec()
        if nodes is None:
            nodes = last.nodes if last else nodespec.nodes(3, [])
        if fake_nodes is None:
            fake_nodes = last.fake_nodes if last else 0
        others = [Home(name).spec() for name in state.names()]
        taken = {other.address for other in others if other}
        address = last.address if last else state.address_for(self.home.path, taken)
        return ClusterSpec(self.name, address, tuple(nodes), fake_nodes)

    def _write_files(self, spec: ClusterSpec) -> None:
        """Write what commands need to find and reach the cluster."""
        files.save(self.home.spec_file, spec)
        url = f"https://{spec.address}:{network.API_PORT}"
        config = programs.kubeconfig(self.home.pki, "admin", url, f"kubeslurm-{self.name}")
        files.write(self.home.kubeconfig, config)

    def _restore_files(self) -> None:
        """Write these files again if they were deleted while the cluster runs."""
        if self.home.spec() and self.home.kubeconfig.exists():
            return
        try:
            self._write_files(self.home.launch().spec)
        except FileNotFoundError as error:
            message = f"The cluster {self.name!r} runs, but {error.filename} is gone."
            raise LocalError(message, f"Run `{self.command('down')}` and the same command again.") from error

    @contextlib.contextmanager
    def _launched(self, spec: ClusterSpec, artifacts: Artifacts) -> Iterator[None]:
        """Start the cluster; it is killed again if the block raises."""
        files.save(self.home.run / "launch.json", Launch(spec, artifacts, self.home.delete_old_disks(spec)))
        (self.home.run / "bin").mkdir()
        (self.home.run / "bin/kubectl").symlink_to(artifacts.kubernetes)
        argv = [sys.executable, "-m", INIT, self.name]
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
                self._kill()
                raise

    def _kill(self) -> bool:
        """Kill all processes, and remove what does not end with their namespaces; returns whether anything ran.

        When the init is killed, the kernel ends every process, mount and link of its namespaces. If the record of the
        init is lost, its processes are found in the cluster's control group.
        """
        if record := self.home.init():
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGKILL)
            while state.start_time(record.pid) == record.started:
                time.sleep(0.01)
        layout = cgroups.detect()
        orphans = cgroups.kill(layout, self.home.group)
        if left := cgroups.remove(layout, self.home.group, timeout=60):
            raise LocalError(
                f"Control groups of the cluster {self.name!r} are still in use: {left[0]}.",
                "End the processes in this group and try again.",
            )
        shutil.rmtree(self.home.run, ignore_errors=True)
        return orphans or record is not None
