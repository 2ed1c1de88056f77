"""Hosts for real Slurm daemons: an image's root file system in namespaces that end with their first process."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support import waiting
from tests.support.kubernetes import run
from tests.support.waiting import WITHIN

# A command that fails counts as not yet: daemons start and take over while they are asked.
wait_for = partial(waiting.wait_for, every=0.05, despite=AssertionError)
ADDRESS = "10.77.0.1"

NETWORK = f"""
ip link set lo up
ip link add eth0 type bridge
ip addr add {ADDRESS}/24 dev eth0
ip link set eth0 up
echo ready
exec cat
"""

HOST = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$SCRATCH"
mkdir "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/root"
mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" "$SCRATCH/root"
cd "$SCRATCH/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs run
install -d -m 1777 run/slurmctld
for pair in $BINDS; do
  mkdir -p ".${pair#*:}"
  mount --bind "${pair%%:*}" ".${pair#*:}"
done
cp "$HOSTS" etc/hosts
hostname "$NAME"
if [ "$CGROUP" ]; then
  # With cgroup v2 a daemon works from its own group, and that has to be the root of all it sees.
  echo 0 > "$CGROUP/cgroup.procs"
  exec unshare --cgroup chroot --userspec="$USER_ID" . "$@"
fi
exec chroot --userspec="$USER_ID" . "$@"
"""


class Network:
    """A network namespace with one address; nothing in it can leave the machine."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["unshare", "--net", "sh", "-ec", NETWORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    @property
    def enter(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._process.pid}/ns/net"]

    def close(self) -> None:
        self._process.communicate(timeout=WITHIN)


class Host:
    """One container's worth of processes: own mounts, process ids and host name, a shared network."""

    def __init__(
        self,
        name: str,
        root: Path,
        command: Sequence[str],
        *,
        network: Network,
        folder: Path,
        binds: Mapping[str, Path],
        user: str = "0:0",
        env: Mapping[str, str] | None = None,
    ) -> None:
        scratch = folder / f"{name}.root"
        scratch.mkdir(parents=True)
        hosts = folder / f"{name}.hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{ADDRESS} ctld n1 n2 n3 {name}\n")
        self.output = folder / f"{name}.output"
        # What a failure shows; whoever knows more of the daemons puts something better here.
        self.evidence: Callable[[], str] = self.output.read_text
        settings = {
            "PATH": os.environ["PATH"],
            "ROOT": str(root),
            "SCRATCH": str(scratch),
            "NAME": name,
            "USER_ID": user,
            "HOSTS": str(hosts),
            "BINDS": " ".join(f"{source}:{target}" for target, source in binds.items()),
        }
        isolate = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        with self.output.open("wb") as sink:
            self._process = subprocess.Popen(
                [*network.enter, *isolate, "sh", "-c", HOST, "sh", *command],
                env=settings | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    @property
    def first(self) -> int:
        """The host's process 1, by its number outside."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        found = wait_for(
            f"{self._process.args!r} to start", lambda: "ended" if self.ended else children.read_text().strip()
        )
        assert found != "ended", f"the host has ended: {self.output.read_text()}"
        return int(found.split()[0])

    def run(self, *command: str) -> str:
        """Runs a command on the host and returns its output."""
        enter = ["nsenter", f"--target={self.first}", "--mount", "--pid", "--net", "--uts", "--root", "--wd"]
        done = run([*enter, *command], deadline=WITHIN)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def processes(self, name: str) -> list[int]:
        """Numbers of the host's processes of that name, as the host sees them."""
        found = self.run("sh", "-c", 'grep -l "^Name:.$1\\(-wlm\\)\\?$" /proc/[0-9]*/status || true', "sh", name)
        return sorted(int(line.split("/")[2]) for line in found.split())

    def terminate(self) -> int:
        """Asks the first process to end, as a kubelet does, and returns its exit status."""
        os.kill(self.first, signal.SIGTERM)
        return self._process.wait(timeout=WITHIN)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """Takes its power away; when this returns, all of its processes are gone."""
        with contextlib.suppress(AssertionError, ProcessLookupError):  # it has ended by itself
            os.kill(self.first, signal.SIGKILL)
        self._process.wait(timeout=WITHIN)
