"""Any order of adds, delays, takes and dones: no key is lost, handled twice, early or out of its priority."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from kubeslurm.engine.queue import EPSILON, Queue

KEYS = st.sampled_from("abcdef")
SECONDS = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0])


class QueueMachine(RuleBasedStateMachine):
    """Compares the queue with a simple model: which keys need a pass, since when, and how urgently."""

    window = 0.0
    taken = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue: Queue[str] = Queue(window=self.window, clock=lambda: self.now)
        self.pending: dict[str, bool] = {}
        self.due: dict[str, float] = {}
        self.processing: set[str] = set()
        self.started: dict[str, float] = {}

    def need(self, key: str, urgent: bool) -> None:
        self.pending[key] = self.pending.get(key, False) or urgent

    def pass_time(self) -> None:
        for key, deadline in list(self.due.items()):
            if deadline <= self.now + EPSILON:
                del self.due[key]
                self.need(key, True)

    @rule(key=KEYS, urgent=st.booleans())
    def add(self, key: str, urgent: bool) -> None:
        self.queue.add(key, urgent=urgent)
        self.need(key, urgent)

    @rule(key=KEYS, seconds=SECONDS)
    def add_after(self, key: str, seconds: float) -> None:
        self.queue.add_after(key, seconds)
        self.due[key] = min(self.due.get(key, self.now + seconds), self.now + seconds)

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.pass_time()

    @rule(target=taken)
    def take(self) -> object:
        key = self.queue.take()
        if key is None:
            assert not self.ready(), "a key that needs a pass was held back"
            return multiple()
        assert key not in self.processing, "handled twice at the same time"
        assert key in self.pending, "the key needed no pass, or not yet"
        if any(self.pending[other] for other in self.ready()) and not self.window:
            assert self.pending[key], "a key of the first list went before an urgent one"
        last = self.started.get(key)
        if self.window and last is not None:
            assert self.now - last >= self.window - EPSILON, "passes of one key are too close"
        del self.pending[key]
        self.processing.add(key)
        self.started[key] = self.now
        return key

    @rule(key=consumes(taken))
    def done(self, key: str) -> None:
        self.queue.done(key)
        self.processing.discard(key)

    @precondition(lambda self: self.pending)
    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        delay = self.queue.retry(key)
        deadline = self.now + delay
        self.due[key] = min(self.due.get(key, deadline), deadline)

    def ready(self) -> list[str]:
        return [
            key
            for key in self.pending
            if key not in self.processing
            and (not self.window or self.now - self.started.get(key, -1e9) >= self.window + EPSILON)
        ]

    @invariant()
    def depth_counts_ready_keys(self) -> None:
        assert self.queue.depth <= len(self.pending) - len(self.processing & self.pending.keys())

    def teardown(self) -> None:
        for key in list(self.processing):
            self.queue.done(key)
        self.processing.clear()
        for _ in range(100):
            self.now += 400.0
            self.pass_time()
            while (last := self.queue.take()) is not None:
                self.pending.pop(last, None)
                self.queue.done(last)
        assert not self.pending, "a key was lost"
        assert not self.due


class WindowedQueueMachine(QueueMachine):
    """The same with a coalescing window."""

    window = 1.0


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestWindowedQueue = WindowedQueueMachine.TestCase
TestWindowedQueue.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
