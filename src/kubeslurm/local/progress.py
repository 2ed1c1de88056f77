"""Shows what is going on: live lines on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kubeslurm.local import cache

SIGN_OF_LIFE = 15.0  # seconds between plain lines of a step that takes long
WORTH_KEEPING = 1.0  # seconds; shorter steps need no guess


class Duration(msgspec.Struct, frozen=True):
    """How long a step took the last time, and for how many pieces."""

    seconds: float
    total: int = 0


class Step:
    """One running piece of work; tell it how far it is."""

    def __init__(self, name: str, last: Duration | None, clock: Callable[[], float]) -> None:
        self.name = name
        self.done = 0
        self.total = 0
        self.note = ""
        self._last = last
        self._clock = clock
        self._started = clock()

    def update(self, *, done: int | None = None, total: int | None = None, note: str | None = None) -> None:
        """How far the step is; any of the three may be left out."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note

    def advance(self) -> None:
        """One more piece is done."""
        self.done += 1

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started

    def __str__(self) -> str:
        count = f"{min(self.done, self.total)} of {self.total} " if self.total else ""
        parts = [text] if (text := f"{count}{self.note}".strip()) else []
        left = remaining(self.elapsed, self.done, self.total, self._last)
        parts += [f"about {spoken(left)} left"] if left is not None else []
        return ", ".join([spoken(self.elapsed), *parts])


def remaining(elapsed: float, done: int, total: int, last: Duration | None) -> float | None:
    """A sensible guess of the seconds left: by the last run at first, by the pace once there is one."""
    share = min(done / total, 1.0) if total else 0.0
    if share >= 0.3 or (share >= 0.05 and last is None):
        return elapsed * (1 - share) / share
    if last is None:
        return None
    whole = last.seconds * (total / last.total if total and last.total else 1.0)
    return whole - elapsed if whole > elapsed else None


def spoken(seconds: float) -> str:
    """`7.4 s`, `48 s` or `2 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Progress:
    """The steps of one command, in any thread. As a context manager it keeps the display up between steps."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._guard = threading.RLock()
        self._holders = 0
        self._running: list[Step] = []
        self._display: Live | _SignsOfLife | None = None

    def __enter__(self) -> "Progress":
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """A step that starts now and ends with the block."""
        step = Step(name, _durations().get(name), self._clock)
        self._hold()
        with self._guard:
            self._running.append(step)
        if not self._console.is_terminal:
            self.say(f"{name} ...")
        try:
            yield step
        except BaseException:
            self._end(step, "[red]✗[/]", "stopped after")
            raise
        self._end(step, "[green]✓[/]", "done in")
        _keep(name, Duration(step.elapsed, step.total))

    def _end(self, step: Step, mark: str, verb: str) -> None:
        with self._guard:
            self._running.remove(step)
        if self._console.is_terminal:
            self._console.print(f"{mark} {escape(step.name)} [dim]{spoken(step.elapsed)}[/]", highlight=False)
        else:
            self.say(f"{step.name}: {verb} {spoken(step.elapsed)}")
        self._release()

    def say(self, text: str) -> None:
        """One line for the user, above the live lines."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def lines(self) -> list[str]:
        """What runs now, one line each."""
        with self._guard:
            return [f"{step.name}: {step}" for step in self._running]

    def _hold(self) -> None:
        with self._guard:
            self._holders += 1
            if self._display is None:
                live = Live(get_renderable=self._render, console=self._console, refresh_per_second=4, transient=True)
                self._display = live if self._console.is_terminal else _SignsOfLife(self)
                self._display.start()

    def _release(self) -> None:
        with self._guard:
            self._holders -= 1
            ended, self._display = (self._display, None) if self._holders == 0 else (None, self._display)
        if ended is not None:
            ended.stop()

    def _render(self) -> RenderableType:
        with self._guard:
            running = list(self._running)
        rows = Table.grid(padding=(0, 1))
        for step in running:
            rows.add_row(_SPINNER, Text(step.name), _bar(step), Text(str(step), style="dim"))
        return Group(rows)


_SPINNER = Spinner("dots", style="cyan")


def _bar(step: Step) -> RenderableType:
    if not step.total:
        return Text()
    filled = round(20 * min(step.done / step.total, 1.0))
    return Text("━" * filled, style="cyan") + Text("━" * (20 - filled), style="bright_black")


class _SignsOfLife:
    """Says now and then what still runs, for logs."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _speak(self) -> None:
        while not self._over.wait(SIGN_OF_LIFE):
            for line in self._progress.lines():
                self._progress.say(line)


def _durations() -> dict[str, Duration]:
    try:
        return msgspec.json.decode((cache.directory() / "durations.json").read_bytes(), type=dict[str, Duration])
    except (OSError, msgspec.MsgspecError):
        return {}


_keeping = threading.Lock()


def _keep(name: str, duration: Duration) -> None:
    """Remember for the next guess; a cache that cannot be written costs only the guess."""
    if duration.seconds < WORTH_KEEPING:
        return
    target = cache.directory() / "durations.json"
    with _keeping:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh = target.with_suffix(f".{threading.get_ident()}")
            fresh.write_bytes(msgspec.json.encode({**_durations(), name: duration}))
            fresh.rename(target)
        except OSError:
            return
