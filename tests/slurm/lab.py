"""A real Slurm cluster for tests: slurmctld, slurmrestd and slurmd from our images, each on a host of its own."""

import os
import secrets
import shutil
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from kubeslurm.slurm import tokens
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.session import Reply, Session
from kubeslurm.slurm.rest.transport import VERSIONS, Api, Transport
from tests.slurm.hosts import Host, Network, wait_for
from tests.support.waiting import WITHIN

SLURM = 401
NOBODY = 65534
ENTRYPOINT = "/usr/local/bin/entrypoint.sh"

# What was submitted may be cancelled before its script has begun, and is then only ended by the kill that follows after
# KillWait. Messages may take their time on a busy machine.
CONF = """\
# comments count in Slurm's checksum
ClusterName=test
SlurmUser=slurm
SlurmctldHost=ctld
SlurmctldPort=6817
StateSaveLocation=/var/spool/slurmctld/test
SlurmdUser=root
SlurmdPort=6818
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=1024
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
ReturnToService=1
KillWait=5
MessageTimeout=100
SchedulerParameters=batch_sched_delay=0,requeue_delay=1
NodeSet=w Feature=w
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED
"""


class Roots(NamedTuple):
    """The images' root file systems."""

    slurmctld: Path
    slurmd: Path
    slurmrestd: Path


class Patient(Transport):
    """Gives every call the time that a busy machine may need; what deadlines lead to is seen elsewhere."""

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: Any = None,
        deadline: float = WITHIN,
        changes: bool = False,
        api: Api = "slurm",
    ) -> Reply:
        deadline = max(deadline, WITHIN)
        return await super().call(method, path, params=params, body=body, deadline=deadline, changes=changes, api=api)


class Lab:
    """Starts and stops the daemons of one cluster below one folder."""

    def __init__(self, roots: Roots, folder: Path) -> None:
        self.folder = folder
        self.jwt_key = secrets.token_bytes(32)
        self._roots = roots
        self._network = Network()
        self._hosts: list[Host] = []
        self._etc = self._directory("etc")
        self._state = self._directory("state", SLURM)
        self._directory("state/test", SLURM)
        self.log = self._directory("log", SLURM)
        self._socket = self._directory("socket", NOBODY)
        self._keys = self._directory("keys")
        self.write("slurm.conf", CONF)
        self.write("cgroup.conf", "CgroupPlugin=disabled\n")
        self._key("slurm.key", secrets.token_bytes(1024))
        self._key("jwt.key", self.jwt_key)
        shutil.copy(self._etc / "slurm.key", self._keys / "slurm.key")

    def write(self, name: str, text: str) -> None:
        """Puts a file into slurmctld's mounted configuration, whole at once as a kubelet does."""
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.replace(self._etc / name)

    def remove(self, name: str) -> None:
        (self._etc / name).unlink(missing_ok=True)

    def slurmctld(self, *, binds: dict[str, Path] | None = None, env: dict[str, str] | None = None) -> Host:
        mounted = {"/etc/slurm": self._etc, "/var/spool/slurmctld": self._state, "/var/log/slurm": self.log}
        return self._start(
            "ctld", self._roots.slurmctld, [ENTRYPOINT], mounted | (binds or {}), f"{SLURM}:{SLURM}", env
        )

    def slurmd(
        self, name: str, *arguments: str, binds: dict[str, Path] | None = None, env: dict[str, str] | None = None
    ) -> Host:
        """A worker, started as the reference operator does it: the node's settings wrapped in literal quotes."""
        port = 7000 + int(name.lstrip("n"))
        command = [ENTRYPOINT, "-Z", "--conf-server", "ctld:6817", "--conf", f"'Features=w Port={port}'", *arguments]
        log = self._directory(f"log-{name}-{secrets.token_hex(4)}")
        mounted = {"/etc/slurm": self._keys, "/var/log/slurm": log, **(binds or {})}
        return self._start(name, self._roots.slurmd, command, mounted, env=env)

    def slurmrestd(self) -> Host:
        etc = self._directory("etc-rest")
        shutil.copy(self._etc / "slurm.conf", etc)
        command = ["slurmrestd", "-a", "rest_auth/jwt", "-s", "openapi/slurmctld", "unix:/socket/rest"]
        binds = {"/etc/slurm": etc, "/socket": self._socket}
        env = {"SLURM_JWT": "daemon", "SLURM_JSON": "compact"}
        host = self._start("rest", self._roots.slurmrestd, command, binds, f"{NOBODY}:{NOBODY}", env)
        wait_for("slurmrestd to serve", lambda: accepts(self._socket / "rest"), story=host.evidence)
        return host

    def client(self, versions: Sequence[str] = VERSIONS, *, key: bytes | None = None) -> SlurmClient:
        def token() -> str:
            return tokens.mint(key or self.jwt_key, "slurm", now=time.time(), lifetime=900)

        http = Session(lambda: aiohttp.UnixConnector(str(self._socket / "rest")))
        return SlurmClient(Patient(["http://slurmrestd"], token, http=http, versions=versions))

    def evidence(self) -> str:
        """The last words of every daemon."""
        files = [*(host.output for host in self._hosts), *sorted(self.folder.glob("log*/*.log"))]
        return "\n".join(f"== {each.relative_to(self.folder)}\n{_tail(each)}" for each in files)

    def close(self) -> None:
        for host in self._hosts:
            host.close()
        self._network.close()

    def _start(
        self,
        name: str,
        root: Path,
        command: list[str],
        binds: dict[str, Path],
        user: str = "0:0",
        env: dict[str, str] | None = None,
    ) -> Host:
        folder = self._directory(f"host-{name}-{secrets.token_hex(4)}")
        host = Host(name, root, command, network=self._network, folder=folder, binds=binds, user=user, env=env)
        host.evidence = self.evidence
        self._hosts.append(host)
        return host

    def _directory(self, name: str, owner: int = 0) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        os.chown(path, owner, owner)
        return path

    def _key(self, name: str, content: bytes) -> None:
        path = self._etc / name
        path.write_bytes(content)
        path.chmod(0o600)
        os.chown(path, SLURM, SLURM)


def accepts(path: Path) -> bool:
    """Whether somebody listens: the file of a socket is there a moment before that."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(path)) == 0


def answers(controller: Host) -> None:
    """Waits until slurmctld serves."""
    wait_for("slurmctld to answer", lambda: "is UP" in controller.run("scontrol", "ping"), story=controller.evidence)


def idle(controller: Host, *nodes: str) -> None:
    """Waits until the nodes could take a job."""
    asked = ("sinfo", "-h", "-N", "-t", "idle", "-n", ",".join(nodes), "-o", "%t")
    wait_for(
        f"{nodes} to be idle",
        lambda: controller.run(*asked).split() == ["idle"] * len(nodes),
        story=lambda: account(controller),
    )


def account(controller: Host) -> str:
    """What Slurm says of its nodes and jobs, and the daemons of themselves."""
    asked = "for each in 'sinfo -Nl' 'sinfo -R' 'squeue -a' 'scontrol show node'; do timeout 20 $each; done 2>&1; true"
    return f"{controller.run('sh', '-c', asked)}\n{controller.evidence()}"


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-40:]) if path.exists() else ""
