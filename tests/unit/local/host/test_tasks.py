import os
import threading
from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.tasks import CommandError, Tasks


def test_the_lines_of_both_output_streams_are_returned() -> None:
    lines: list[str] = []
    assert Tasks().run(["sh", "-c", "echo out; echo err >&2"], on_line=lines.append) == ["out", "err"]
    assert lines == ["out", "err"]


def test_an_error_has_the_output_of_the_program() -> None:
    with pytest.raises(CommandError) as caught:
        Tasks().run(["sh", "-c", "echo a reason; exit 3"])
    error = caught.value.as_error("It failed.", "Do this.")
    assert str(error) == "It failed. Its output:\n    a reason\n Do this."


def test_a_full_disk_is_reported_as_such() -> None:
    with pytest.raises(CommandError) as caught:
        Tasks().run(["sh", "-c", "echo write x: No space left on device; exit 1"])
    message = str(caught.value.as_error("Building x failed.", "Do this."))
    assert message == "Building x failed. The disk is full. Free some space and run the same command again."


def test_a_missing_program_is_an_error_with_its_name() -> None:
    with pytest.raises(LocalError, match="no-such-program is not installed"):
        Tasks().run(["no-such-program"])


def test_the_first_failure_stops_the_others(tmp_path: Path) -> None:
    tasks, started, pids = Tasks(), threading.Event(), []

    def endless() -> None:
        def note(line: str) -> None:
            pids.append(int(line))
            started.set()

        tasks.run(["sh", "-c", "echo $$; exec sleep 1000"], on_line=note)

    def failing() -> None:
        assert started.wait(300)
        raise LocalError("Broken.")

    with pytest.raises(LocalError, match="Broken"):
        tasks.run_parallel(endless, failing)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_run_parallel_returns_when_all_functions_have_succeeded() -> None:
    done: list[int] = []
    Tasks().run_parallel(lambda: done.append(1), lambda: done.append(2))
    assert sorted(done) == [1, 2]
