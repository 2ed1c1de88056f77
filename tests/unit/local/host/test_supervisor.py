import os
import signal
import threading
from pathlib import Path

from kubeslurm.local.host import supervisor
from kubeslurm.local.host.supervisor import Component, ComponentStatus, rotate, spawn, supervise


def run(component: Component, until: str) -> ComponentStatus:
    """Supervise one program until it has a state."""
    latest: list[ComponentStatus] = []

    def report(reported: list[ComponentStatus]) -> None:
        latest[:] = reported
        if reported[0].state == until:
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        supervise([component], report)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return latest[0]


def program(script: str, log: Path) -> Component:
    argv = ("sh", "-c", script)
    return with_long_backoff(Component("component", lambda: spawn(argv, {"PATH": os.environ["PATH"]}, log)))


def with_long_backoff(component: Component) -> Component:
    """Not restarted before its exit is reported, even on a slow machine."""
    component.backoff = supervisor.MAX_BACKOFF
    return component


def test_a_program_that_exits_is_restarted_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    status = run(program("echo text; exit 3", tmp_path / "component.log"), "restarting")
    assert (status.restarts, status.last_exit) == (1, "exit code 3")
    assert (tmp_path / "component.log").read_text() == "text\n"


def test_a_program_that_runs_once_is_done_when_it_succeeds(tmp_path: Path) -> None:
    component = program("exit 0", tmp_path / "component.log")
    component.once = True
    assert run(component, "done").restarts == 0


def test_a_program_that_may_not_run_is_stopped_and_not_restarted(tmp_path: Path) -> None:
    component = program(f"rm {tmp_path}/may-run; kill -9 $$", tmp_path / "component.log")
    (tmp_path / "may-run").touch()
    component.may_run = (tmp_path / "may-run").exists
    status = run(component, "stopped")
    assert (status.restarts, status.last_exit) == (0, "killed by signal 9")


def test_a_program_that_cannot_be_started_is_retried_and_the_error_is_kept(tmp_path: Path) -> None:
    component = with_long_backoff(
        Component("component", lambda: spawn(("no-such-program",), {}, tmp_path / "component.log"))
    )
    status = run(component, "restarting")
    assert "No such file" in status.last_exit


def test_the_backoff_grows_up_to_a_limit() -> None:
    component = Component("component", lambda: 1)
    backoffs = []
    for _ in range(10):
        component.set_state("running", 1)
        component.exited("exit code 1")
        backoffs.append(component.backoff)
    assert backoffs[:3] == [0.5, 1.0, 2.0]
    assert backoffs[-1] == supervisor.MAX_BACKOFF


def test_rotate_keeps_the_end_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_bytes(b"old " * 100 + b"the very end")
    rotate(log, limit=100)
    assert log.read_bytes() == b""
    assert (tmp_path / "etcd.log.1").read_bytes().endswith(b"the very end")
    log.write_bytes(b"short")
    rotate(log, limit=100)
    assert log.read_bytes() == b"short"
