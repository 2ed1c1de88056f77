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

from kubeslurm.local import cgroups, control, controlplane, limits, network, pki, state
from kubeslurm.local.artifacts import Artifacts, prepare
from kubeslurm.local.control import NodeCondition, Reply, Request
from kubeslurm.local.errors import LocalError
from kubeslurm.local.nodespec import NodeSpec
from kubeslurm.local.progress import Progress
from kubeslurm.local.readiness import log_name, wait_until_ready
from kubeslurm.local.state import ClusterSpec, Home, Launch, Reached

DEFAULT_NAME = "default"
DEFAULT_TIMEOUT = 180.0


class Node:
    """A handle on one node of a running cluster."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.cluster = cluster
        self.name = name

    def start(self) -> None:
        """Bring the node up again."""
        self.cluster.ask("start", self.name)

    def stop(self) -> None:
        """Shut the node down in order."""
        self.cluster.ask("stop", self.name)

    def kill(self) -> None:
        """Take the node's power away."""
        self.cluster.ask("kill", self.name)

    @property
    def condition(self) -> NodeCondition:
        return next(node for node in self.cluster.status().nodes if node.name == self.name)


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
        timeout: float = DEFAULT_TIMEOUT,
    ) -> bool:
        """Start the cluster, as it was the last time where nothing else is asked for; False when it runs already."""
        with self.home.locked(), progress or Progress() as shown:
            if self.running:
                return False
            self._clean_up()
            if fresh:
                self._forget()
            spec = self._wish(nodes, fake_nodes)
            limits.check(spec)
            parts = prepare(progress=shown, kwok=spec.fake_nodes > 0)
            self.home.make()
            pki.ensure(self.home.pki, spec, dt.datetime.now(dt.UTC))
            state.save(self.home.spec_file, spec)
            url = f"https://{spec.address}:{network.API_PORT}"
            config = controlplane.kubeconfig(self.home.pki, "admin", url, f"kubeslurm-{self.name}")
            state.replace(self.home.kubeconfig, config)
            with shown.step(f"starting the cluster {self.name}") as step, self._launched(spec, parts):
                wait_until_ready(self, step, deadline=time.monotonic() + timeout)
        return True

    def down(self, *, purge: bool = False) -> bool:
        """Stop the cluster and leave nothing behind but its state; False when it did not run."""
        if not self.home.path.exists():
            return False
        with self.home.locked():
            was_running = self.running
            self._kill()
            self._clean_up()
            if purge:
                self._forget()
                self.home.path.rmdir()
        return was_running

    def status(self) -> Reply:
        """What every component and node is doing."""
        return self.ask("status")

    def reached(self) -> Reached:
        """How far Kubernetes in the cluster is."""
        return state.load(self.home.run / "reached.json", Reached) or Reached()

    def log(self, component: str) -> Path:
        """The log of a component, by its name in `status`."""
        path = self.home.logs / log_name(component)
        if not path.exists():
            names = sorted(log.stem.replace(".", "/") for log in self.home.logs.glob("*.log"))
            raise LocalError(f"There is no log of {component!r}.", f"There are: {', '.join(names) or 'none'}.")
        return path

    def node(self, name: str) -> Node:
        """A node by name."""
        names = [node.name for node in self.spec.nodes]
        if name not in names:
            raise LocalError(
                f"The cluster {self.name!r} has no node {name!r}.", f"Its nodes are: {', '.join(names) or 'none'}."
            )
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
        return _run(["nsenter", f"--target={self._init()}", "--net", "--", *argv])

    def exec_in_node(self, node: str, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command of the node image inside a node."""
        return _run([*self.node_command(node), *argv])

    def node_command(self, name: str) -> list[str]:
        """The beginning of a command line that runs something inside a node."""
        pid = self.node(name).condition.pid
        if not pid:
            raise LocalError(
                f"The node {name!r} is not running.", f"Start it with `{self.command(f'node start {name}')}`."
            )
        path = controlplane.ENVIRONMENT["PATH"]
        return ["nsenter", f"--target={pid}", "--all", "--", "env", "-i", f"PATH={path}", "HOME=/root", "TERM=xterm"]

    def ask(self, verb: str, node: str = "") -> Reply:
        """One request to the cluster's init."""
        self._init()
        return control.ask(self.home.run, Request(verb, node))

    def _init(self) -> int:
        if record := self.home.init():
            return record.pid
        raise LocalError(f"The cluster {self.name!r} is not running.", f"Start it with `{self.command('up')}`.")

    def _wish(self, nodes: Sequence[NodeSpec] | None, fake_nodes: int | None) -> ClusterSpec:
        before = self.home.spec()
        if nodes is None:
            nodes = before.nodes if before else [NodeSpec(f"node-{n}", n) for n in (1, 2, 3)]
        if fake_nodes is None:
            fake_nodes = before.fake_nodes if before else 0
        if before:
            return ClusterSpec(self.name, before.address, tuple(nodes), fake_nodes)
        others = [Home(name).spec() for name in state.names()]
        address = state.address_for(self.home.path, {other.address for other in others if other})
        return ClusterSpec(self.name, address, tuple(nodes), fake_nodes)

    @contextlib.contextmanager
    def _launched(self, spec: ClusterSpec, parts: Artifacts) -> Iterator[None]:
        """The cluster starts here, stays when the block ends well, and is gone when it does not."""
        state.save(
            self.home.run / "launch.json",
            Launch(spec, parts.kubernetes, parts.node_root, parts.pause, parts.kwok, self._drop_disks(spec)),
        )
        (self.home.run / "bin").mkdir()
        (self.home.run / "bin/kubectl").symlink_to(parts.kubernetes)
        commit_read, commit = os.pipe()
        log = os.open(self.home.logs / "init.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            subprocess.run(
                [sys.executable, "-m", "kubeslurm.local.init", self.name, str(commit_read)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(commit_read,),
                start_new_session=True,
                check=True,
            )
            os.close(commit_read)
            yield
            os.write(commit, b"+")
        except BaseException:
            self._kill()
            self._clean_up()
            raise
        finally:
            os.close(commit)
            os.close(log)

    def _drop_disks(self, spec: ClusterSpec) -> tuple[str, ...]:
        """Remove disks and logs of nodes that are no longer asked for, and say whose they were."""
        wanted = {node.name for node in spec.nodes}
        former = [disk for disk in self.home.nodes.glob("*") if disk.name not in wanted]
        for disk in former:
            shutil.rmtree(disk)
            for log in self.home.logs.glob(f"{disk.name}.*"):
                log.unlink()
        return tuple(disk.name for disk in former)

    def _kill(self) -> None:
        """One signal to the init ends every process, and with them every mount and link."""
        if record := self.home.init():
            os.kill(record.pid, signal.SIGKILL)
            while state.started(record.pid) == record.started:
                time.sleep(0.01)

    def _clean_up(self) -> None:
        """What namespaces do not take along: cgroups and the run directory."""
        if left := cgroups.remove(cgroups.detect(), self.home.group):
            raise LocalError(
                f"Control groups of the cluster {self.name!r} are still in use: {left[0]}.",
                "End the processes in it and try again.",
            )
        shutil.rmtree(self.home.run, ignore_errors=True)

    def _forget(self) -> None:
        for entry in self.home.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def command(self, rest: str) -> str:
        """How a user would say it."""
        name = "" if self.name == DEFAULT_NAME else f" --name {self.name}"
        return f"kubeslurm local {rest}{name}"


def _run(argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(argv, capture_output=True, text=True, check=False)
