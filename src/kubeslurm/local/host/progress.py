"""Shows the progress of a command: live lines on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

HEARTBEAT = 15.0  # seconds between plain lines about a step that still runs


class Step:
    """One running step of a command."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.done = 0
        self.total = 0
        self.note = ""
        self._clock = clock
        self._started = clock()

    def update(self, *, done: int | None = None, total: int | None = None, note: str | None = None) -> None:
        """Set the progress; arguments that are left out keep their value."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note

    @property
    def fraction(self) -> float:
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started

    def __str__(self) -> str:
        count = f"{min(self.done, self.total)} of {self.total} " if self.total else ""
        parts = [text] if (text := f"{count}{self.note}".strip()) else []
        # An estimate from the speed so far is too uncertain before 5 %.
        if 0.05 <= self.fraction < 1.0:
            parts.append(f"about {format_duration(self.elapsed * (1 - self.fraction) / self.fraction)} left")
        return ", ".join([format_duration(self.elapsed), *parts])


def format_duration(seconds: float) -> str:
    """`7.4 s`, `48 s` or `2 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Progress:
    """The steps of one command, from any thread. Used as a context manager it also shows steps while they run."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._running: list[Step] = []
        live = Live(get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True)
        self._display = live if self._console.is_terminal else _Heartbeat(self)

    def __enter__(self) -> "Progress":
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """A step that lasts as long as the block."""
        step = Step(name, self._clock)
        symbol, result = "[red]✗[/]", "stopped after"
        self._running.append(step)
        if not self._console.is_terminal:
            self.print(f"{name} ...")
        try:
            yield step
            symbol, result = "[green]✓[/]", "done in"
        finally:
            self._running.remove(step)
            if self._console.is_terminal:
                self._console.print(f"{symbol} {escape(name)} [dim]{format_duration(step.elapsed)}[/]", highlight=False)
            else:
                self.print(f"{name}: {result} {format_duration(step.elapsed)}")

    def print(self, text: str) -> None:
        """Print one line, above the live lines."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def lines(self) -> list[str]:
        """One line for each step that runs now."""
        return [f"{step.name}: {step}" for step in list(self._running)]

    def _render(self) -> Table:
        rows = Table.grid(padding=(0, 1))
        for step in list(self._running):
            filled = round(20 * step.fraction)
            bar = Text("━" * filled, style="cyan") + Text("━" * (20 - filled), style="bright_black")
            rows.add_row(_SPINNER, Text(step.name), bar if step.total else Text(), Text(str(step), style="dim"))
        return rows


_SPINNER = Spinner("dots", style="cyan")


class _Heartbeat(threading.Thread):
    """Prints from time to time which steps still run, where there is no terminal."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(daemon=True)
        self._progress = progress
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            for line in self._progress.lines():
                self._progress.print(line)

    def stop(self) -> None:
        self._ended.set()
        self.join()
