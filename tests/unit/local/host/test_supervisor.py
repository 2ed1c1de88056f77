import os
import signal
import threading
from pathlib import Path

from kubeslurm.local.host import supervisor
from kubeslurm.local.host.supervisor import Component, Condition, bound, spawn, supervise


def run(part: Component, until: str) -> Condition:
    """Supervise one program until a state is seen."""
    states: list[Condition] = []

    def report(seen: list[Condition]) -> None:
        states[:] = seen
        if seen[0].state == until:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        supervise([part], report)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return states[0]


def program(script: str, log: Path) -> Component:
    argv = ("sh", "-c", script)
    return patient(Component("part", lambda: spawn(argv, {"PATH": os.environ["PATH"]}, log)))


def patient(part: Component) -> Component:
    """Not started again before its end was told, however slow the machine is."""
    part.pause = supervisor.LONGEST_PAUSE
    return part


def test_what_ends_is_started_again_and_says_how_it_ended(tmp_path: Path) -> None:
    seen = run(program("echo spoken; exit 3", tmp_path / "part.log"), "restarting")
    assert (seen.restarts, seen.last_exit) == (1, "exit code 3")
    assert (tmp_path / "part.log").read_text() == "spoken\n"


def test_a_program_for_once_is_done_when_it_ends_well(tmp_path: Path) -> None:
    part = program("exit 0", tmp_path / "part.log")
    part.once = True
    assert run(part, "done").restarts == 0


def test_what_may_not_run_any_more_stays_down_and_that_is_no_restart(tmp_path: Path) -> None:
    part = program(f"rm {tmp_path}/wanted; kill -9 $$", tmp_path / "part.log")
    (tmp_path / "wanted").touch()
    part.may_run = (tmp_path / "wanted").exists
    seen = run(part, "stopped")
    assert (seen.restarts, seen.last_exit) == (0, "killed by signal 9")


def test_what_cannot_be_started_is_tried_again_and_says_why(tmp_path: Path) -> None:
    part = patient(Component("part", lambda: spawn(("no-such-program",), {}, tmp_path / "part.log")))
    seen = run(part, "restarting")
    assert "No such file" in seen.last_exit


def test_pauses_grow_up_to_a_limit() -> None:
    part = Component("part", lambda: 1)
    pauses = []
    for _ in range(10):
        part.become("running", 1)
        part.ended("exit code 1")
        pauses.append(part.pause)
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert pauses[-1] == supervisor.LONGEST_PAUSE


def test_a_log_that_grew_too_long_keeps_its_end(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_bytes(b"old " * 100 + b"the very end")
    bound(log, limit=100)
    assert log.read_bytes() == b""
    assert (tmp_path / "etcd.log.1").read_bytes().endswith(b"the very end")
    log.write_bytes(b"short")
    bound(log, limit=100)
    assert log.read_bytes() == b"short"
