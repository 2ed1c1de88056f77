import io

import pytest
from rich.console import Console

from kubeslurm.local.host.progress import Progress, Step, format_duration
from tests.support.clock import HandClock


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, color_system=None, width=100), out


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (7.44, "7.4 s"), (48.2, "48 s"), (125, "2 min 05 s"), (60, "1 min 00 s")]
)
def test_durations_are_formatted(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "text"),
    [
        pytest.param(10, 0, 0, "10 s", id="without a total"),
        pytest.param(10, 1, 100, "10 s, 1 of 100", id="too early for an estimate"),
        pytest.param(10, 10, 100, "10 s, 10 of 100, about 1 min 30 s left", id="estimate"),
        pytest.param(10, 120, 100, "10 s, 100 of 100", id="more than the total"),
    ],
)
def test_a_step_estimates_the_remaining_time(elapsed: float, done: int, total: int, text: str) -> None:
    clock = HandClock()
    step = Step("compile", clock)
    step.update(done=done, total=total)
    clock.now += elapsed
    assert str(step) == text


def test_without_a_terminal_a_step_prints_its_start_and_its_duration() -> None:
    target, out = console(terminal=False)
    clock = HandClock()
    with Progress(target, clock).step("build image node"):
        clock.now += 12
    assert out.getvalue().splitlines() == ["build image node ...", "build image node: done in 12 s"]


def test_a_failed_step_is_not_reported_as_done() -> None:
    target, out = console(terminal=False)
    with pytest.raises(ValueError, match="no"), Progress(target).step("build"):
        raise ValueError("no")
    assert "stopped after" in out.getvalue()
    assert "done" not in out.getvalue()


def test_lines_show_the_progress_of_running_steps() -> None:
    target, _ = console(terminal=False)
    clock = HandClock()
    progress = Progress(target, clock)
    with progress.step("compile kubernetes") as step:
        step.update(done=700, total=2800, note="packages")
        clock.now += 60
        assert progress.lines() == ["compile kubernetes: 1 min 00 s, 700 of 2800 packages, about 3 min 00 s left"]
    assert progress.lines() == []


def test_a_terminal_shows_parallel_steps_with_a_check_mark_when_done() -> None:
    target, out = console(terminal=True)
    with Progress(target) as progress, progress.step("one"), progress.step("two") as two:
        two.update(done=1, total=2)
    assert "✓ one" in out.getvalue()
    assert "✓ two" in out.getvalue()


def test_brackets_in_a_message_are_not_markup() -> None:
    target, out = console(terminal=False)
    Progress(target).print("[bold]not markup[/bold]")
    assert out.getvalue() == "[bold]not markup[/bold]\n"
