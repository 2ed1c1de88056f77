"""Programs run side by side, and none outlives a failure."""

import os
import threading
from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.tasks import Failed, Tasks


def test_output_comes_line_by_line_from_both_streams() -> None:
    seen: list[str] = []
    assert Tasks().run(["sh", "-c", "echo out; echo err >&2"], on_line=seen.append) == ["out", "err"]
    assert seen == ["out", "err"]


def test_a_failure_carries_what_the_program_said_last() -> None:
    with pytest.raises(Failed) as caught:
        Tasks().run(["sh", "-c", "echo a reason; exit 3"])
    error = caught.value.as_error("It failed.", "Do this.")
    assert str(error) == "It failed. It said:\n    a reason\n Do this."


def test_a_full_disk_is_called_by_its_name() -> None:
    with pytest.raises(Failed) as caught:
        Tasks().run(["sh", "-c", "echo write x: No space left on device; exit 1"])
    told = str(caught.value.as_error("Building x failed.", "Do this."))
    assert told == "Building x failed. The disk is full. Free some space and run the same command again."


def test_a_missing_program_is_named() -> None:
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
        tasks.together(endless, failing)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_parts_that_all_succeed_return_together() -> None:
    done: list[int] = []
    Tasks().together(lambda: done.append(1), lambda: done.append(2))
    assert sorted(done) == [1, 2]
