"""Shows what is going on: live lines on a terminal, plain lines elsewhere."""

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

SIGN_OF_LIFE = 15.0  # seconds between plain lines of a step that takes long


class Step:
    """One running piece of work; tell it how far it is."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.done = 0
        self.total = 0
        self.note = ""
        self._clock = clock
        self._started = clock()

    def update(self, *, done: int | None = None, total: int | None = None, note: str | None = None) -> None:
        """How far the step is; any of the three may be left out."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note

    @property
    def share(self) -> float:
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started

    def __str__(self) -> str:
        count = f"{min(self.done, self.total)} of {self.total} " if self.total else ""
        parts = [text] if (text := f"{count}{self.note}".strip()) else []
        # Guessed from the pace, as soon as there is one.
        if 0.05 <= self.share < 1.0:
            parts.append(f"about {spoken(self.elapsed * (1 - self.share) / self.share)} left")
        return ", ".join([spoken(self.elapsed), *parts])


def spoken(seconds: float) -> str:
    """`7.4 s`, `48 s` or `2 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Progress:
    """The steps of one command, in any thread. As a context manager it shows how far they are, not only their ends."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._running: list[Step] = []
        live = Live(get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True)
        self._display = live if self._console.is_terminal else _SignsOfLife(self)

    def __enter__(self) -> "Progress":
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """A step that starts now and ends with the block."""
        step = Step(name, self._clock)
        mark, verb = "[red]✗[/]", "stopped after"
        self._running.append(step)
        if not self._console.is_terminal:
            self.say(f"{name} ...")
        try:
            yield step
            mark, verb = "[green]✓[/]", "done in"
        finally:
            self._running.remove(step)
            if self._console.is_terminal:
                self._console.print(f"{mark} {escape(name)} [dim]{spoken(step.elapsed)}[/]", highlight=False)
            else:
                self.say(f"{name}: {verb} {spoken(step.elapsed)}")

    def say(self, text: str) -> None:
        """One line for the user, above the live lines."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def lines(self) -> list[str]:
        """What runs now, one line each."""
        return [f"{step.name}: {step}" for step in list(self._running)]

    def _render(self) -> Table:
        rows = Table.grid(padding=(0, 1))
        for step in list(self._running):
            filled = round(20 * step.share)
            bar = Text("━" * filled, style="cyan") + Text("━" * (20 - filled), style="bright_black")
            rows.add_row(_SPINNER, Text(step.name), bar if step.total else Text(), Text(str(step), style="dim"))
        return rows


_SPINNER = Spinner("dots", style="cyan")


class _SignsOfLife(threading.Thread):
    """Says now and then what still runs, for logs."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(daemon=True)
        self._progress = progress
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(SIGN_OF_LIFE):
            for line in self._progress.lines():
                self._progress.say(line)

    def stop(self) -> None:
        self._over.set()
        self.join()
