"""Progress: honest guesses, plain lines in logs, live lines on a terminal."""

import io

import pytest
from rich.console import Console

from kubeslurm.local.host.progress import Progress, Step, spoken
from tests.support.clock import HandClock


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, color_system=None, width=100), out


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (7.44, "7.4 s"), (48.2, "48 s"), (125, "2 min 05 s"), (60, "1 min 00 s")]
)
def test_durations_read_as_people_say_them(seconds: float, words: str) -> None:
    assert spoken(seconds) == words


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "said"),
    [
        pytest.param(10, 0, 0, "10 s", id="nothing known, nothing claimed"),
        pytest.param(10, 1, 100, "10 s, 1 of 100", id="too early for a pace"),
        pytest.param(10, 10, 100, "10 s, 10 of 100, about 1 min 30 s left", id="by the pace"),
        pytest.param(10, 120, 100, "10 s, 100 of 100", id="never less than nothing"),
    ],
)
def test_the_guess_of_the_rest(elapsed: float, done: int, total: int, said: str) -> None:
    clock = HandClock()
    step = Step("compile", clock)
    step.update(done=done, total=total)
    clock.now += elapsed
    assert str(step) == said


def test_without_a_terminal_a_step_has_a_line_at_its_start_and_one_with_its_seconds() -> None:
    target, out = console(terminal=False)
    clock = HandClock()
    with Progress(target, clock).step("build image node"):
        clock.now += 12
    assert out.getvalue().splitlines() == ["build image node ...", "build image node: done in 12 s"]


def test_a_failed_step_is_not_called_done() -> None:
    target, out = console(terminal=False)
    with pytest.raises(ValueError, match="no"), Progress(target).step("build"):
        raise ValueError("no")
    assert "stopped after" in out.getvalue()
    assert "done" not in out.getvalue()


def test_a_sign_of_life_says_how_far_a_step_is() -> None:
    target, _ = console(terminal=False)
    clock = HandClock()
    progress = Progress(target, clock)
    with progress.step("compile kubernetes") as step:
        step.update(done=700, total=2800, note="packages")
        clock.now += 60
        assert progress.lines() == ["compile kubernetes: 1 min 00 s, 700 of 2800 packages, about 3 min 00 s left"]
    assert progress.lines() == []


def test_a_terminal_shows_steps_that_run_side_by_side_and_ticks_them_off() -> None:
    target, out = console(terminal=True)
    with Progress(target) as progress, progress.step("one"), progress.step("two") as two:
        two.update(done=1, total=2)
    assert "✓ one" in out.getvalue()
    assert "✓ two" in out.getvalue()


def test_brackets_in_a_message_are_shown_as_they_are() -> None:
    target, out = console(terminal=False)
    Progress(target).say("[bold]not markup[/bold]")
    assert out.getvalue() == "[bold]not markup[/bold]\n"
