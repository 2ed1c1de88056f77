"""What a login pod does before it is stopped: nobody new gets in, and it waits for those who are there."""

import subprocess
from pathlib import Path

import pytest

from kubeslurm.build.login.deployment import PRE_STOP
from tests.support.waiting import wait_for

SESSION = "sshd-session: alice@pts/0"


class Pod:
    """The files of a login pod that the script looks at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("proc", "etc", "dev/pts", "bin"):
            (root / folder).mkdir(parents=True)
        sleep = root / "bin" / "sleep"
        sleep.write_text(f"#!/bin/sh\necho x >> {root}/slept\nexec /bin/sleep 0.01\n")
        sleep.chmod(0o755)

    def process(self, pid: int, name: str, *words: str) -> None:
        folder = self.root / "proc" / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(f"{name}\n")
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))

    def end(self, pid: int) -> None:
        for name in ("comm", "cmdline"):
            (self.root / "proc" / str(pid) / name).unlink()

    def stop(self) -> "subprocess.Popen[bytes]":
        script = PRE_STOP
        for path in ("/proc/", "/etc/", "/dev/pts/"):
            script = script.replace(path, f"{self.root}{path}")
        return subprocess.Popen(["/bin/sh", "-c", script], env={"PATH": f"{self.root}/bin:/usr/bin:/bin"})

    def is_waiting(self) -> bool:
        return (self.root / "slept").exists()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    made = Pod(tmp_path)
    made.process(1, "entrypoint.sh", "/bin/bash", "/usr/local/bin/entrypoint.sh")
    made.process(2, "sshd", "sshd: /usr/sbin/sshd -D -e [listener] 0 of 10-100 startups")
    made.process(3, "sshd-session", "sshd-session: alice [priv]")
    made.process(4, "sshd-session", "sshd-session: [accepted]")
    return made


def test_a_pod_without_users_goes_at_once_and_lets_nobody_in(pod: Pod) -> None:
    assert pod.stop().wait(timeout=60) == 0
    assert not pod.is_waiting()
    assert "log" in (pod.root / "etc" / "nologin").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sshd-session", ("sshd-session: alice@pts/0",)),
        ("sshd-session", ("sshd-session: alice@notty",)),
        ("sshd", ("sshd: bob@pts/1",)),
        ("srun", ("srun", "--pty", "bash")),
        ("salloc", ("salloc", "--nodes=4")),
    ],
)
def test_a_pod_waits_for_sessions_and_for_interactive_jobs(pod: Pod, name: str, words: tuple[str, ...]) -> None:
    pod.process(9, name, *words)
    with pod.stop() as stopping:
        try:
            wait_for("the script to wait", pod.is_waiting)
            assert stopping.poll() is None
        finally:
            pod.end(9)
        assert stopping.wait(timeout=60) == 0


def test_a_command_that_only_mentions_a_session_is_none(pod: Pod) -> None:
    pod.process(9, "grep", "grep", "-r", f"x {SESSION}")
    assert pod.stop().wait(timeout=60) == 0
    assert not pod.is_waiting()
