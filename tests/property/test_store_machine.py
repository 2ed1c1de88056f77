"""Watch events in order, lists, and answers to our own writes in any order: the store never goes back in time."""

from typing import NamedTuple

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubeslurm.engine.store import Store

NAMES = st.sampled_from("abcd")
OWNERS = st.lists(st.sampled_from("xyz"), max_size=2, unique=True).map(tuple)


class Thing(NamedTuple):
    name: str
    version: int
    uid: int
    owners: tuple[str, ...]


class Change(NamedTuple):
    version: int
    thing: Thing
    deleted: bool


class StoreMachine(RuleBasedStateMachine):
    """A server with a history, a watch that lags behind, and answers that come late."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.uid = 0
        self.server: dict[str, Thing] = {}
        self.history: list[Change] = []
        self.watched = 0
        self.answers: list[Thing] = []
        self.deleted: list[Thing] = []
        self.notified: dict[str, Thing] = {}
        self.store: Store[str, Thing] = Store(
            lambda thing: thing.name,
            indices={"owner": lambda thing: thing.owners},
            version=lambda thing: thing.version,
            identity=lambda thing: thing.uid,
            clock=lambda: 0.0,
        )
        self.store.subscribe(self.listen)

    def listen(self, key: str, old: Thing | None, new: Thing | None) -> None:
        assert self.notified.get(key) == old, "listeners are called for every change"
        if new is None:
            del self.notified[key]
        else:
            assert old is None or new.version > old.version, "the store went back in time"
            self.notified[key] = new

    @rule(name=NAMES, owners=OWNERS, ours=st.booleans())
    def write(self, name: str, owners: tuple[str, ...], ours: bool) -> None:
        self.version += 1
        known = self.server.get(name)
        if known is None:
            self.uid += 1
        thing = Thing(name, self.version, known.uid if known else self.uid, owners)
        self.server[name] = thing
        self.history.append(Change(self.version, thing, deleted=False))
        if ours:
            self.answers.append(thing)

    @precondition(lambda self: self.server)
    @rule(data=st.data(), ours=st.booleans())
    def delete(self, data: st.DataObject, ours: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.server)))
        self.version += 1
        last = self.server.pop(name)
        self.history.append(Change(self.version, last._replace(version=self.version), deleted=True))
        if ours:
            self.deleted.append(last)

    @precondition(lambda self: self.watched < len(self.history))
    @rule(count=st.integers(1, 5))
    def watch(self, count: int) -> None:
        for change in self.history[self.watched :][:count]:
            if change.deleted:
                self.store.remove(change.thing.name, version=change.version)
            else:
                self.store.put(change.thing)
            self.watched += 1

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.answers) - 1))
        self.store.observe_write(self.answers.pop(index))

    @precondition(lambda self: self.deleted)
    @rule()
    def answer_to_delete(self) -> None:
        self.store.observe_delete(self.deleted.pop(0))

    @rule()
    def relist(self) -> None:
        self.store.replace(list(self.server.values()), version=self.version)
        self.watched = len(self.history)
        assert {thing.name: thing for thing in self.store} == self.server

    @invariant()
    def store_and_listeners_agree(self) -> None:
        assert {thing.name: thing for thing in self.store} == self.notified

    @invariant()
    def indices_hold_exactly_what_they_should(self) -> None:
        for owner in "xyz":
            expected = {thing.name for thing in self.notified.values() if owner in thing.owners}
            assert {thing.name for thing in self.store.by("owner", owner)} == expected
            assert all(self.store[thing.name] == thing for thing in self.store.by("owner", owner))
            assert self.store.count("owner", owner) == len(expected)

    def teardown(self) -> None:
        while self.answers:
            self.store.observe_write(self.answers.pop())
        while self.deleted:
            self.store.observe_delete(self.deleted.pop())
        if self.watched < len(self.history):
            self.watch(len(self.history))
        assert {thing.name: thing for thing in self.store} == self.server


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
