"""What a controller declares about itself; caches, indices, roles, flags and wiring are derived from it."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import Kind
from kubeslurm.api.resource import Resource
from kubeslurm.control import rights
from kubeslurm.control.rights import Rule
from kubeslurm.engine.controller import Controller, Requeue
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.unreadable import Unreadable
from kubeslurm.report.events import Recorder
from kubeslurm.slurm.clusters import Clusters, SlurmCluster

T = TypeVar("T", bound=Resource)


class Options(msgspec.Struct, frozen=True):
    """Settings of the operator that concern all clusters."""

    cluster_domain: str = names.DOMAIN
    propagated_node_conditions: frozenset[str] = frozenset()
    drain_on_node_conditions: frozenset[str] = frozenset()
    drain_on_node_taints: bool = False
    slurm_drain_on_node: str = ""  # how Kubernetes nodes show a drain made in Slurm: Condition, Taint, Cordon or not


class Context(msgspec.Struct, frozen=True):
    """What every reconciler is made with."""

    kube: Kube
    caches: Caches
    clusters: Clusters
    events: Recorder
    options: Options = Options()


class Reconciler(Protocol):
    """Brings one object in line with its spec."""

    async def reconcile(self, key: Key) -> Requeue | None: ...


class Index(msgspec.Struct, Generic[T], frozen=True):
    """Files the objects of a cached kind under text values."""

    kind: Kind[T]
    name: str
    values: Callable[[T], Iterable[str]]

    def get(self, caches: Caches, value: object) -> Collection[T]:
        """The objects filed under a value."""
        return caches.store(self.kind).by(self.name, str(value))

    def count(self, caches: Caches, value: object) -> int:
        """How many objects are filed under a value."""
        return caches.store(self.kind).count(self.name, str(value))


class Watch(msgspec.Struct, Generic[T], frozen=True):
    """A kind whose changes concern objects of the controller: `keys` says which, `when` which changes count."""

    kind: Kind[T]
    keys: Callable[[Context, T], Iterable[Key]]
    when: Callable[[Context, T | None, T | None], bool] | None = None


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """One controller."""

    name: str
    make: Callable[[Context], Reconciler]
    watches: tuple[Watch[Any], ...]
    kind: Kind[Any] | None = None  # the kind that it serves
    reads: tuple[Kind[Any], ...] = ()  # kinds that it reads from memory without watching them
    indices: tuple[Index[Any], ...] = ()
    rights: tuple[Rule, ...] = ()  # besides those that serving, watching and reading need
    watch_slurm: Callable[[Context, Controller, SlurmCluster], None] | None = None
    of_unreadable: Callable[[Context, Unreadable], Iterable[Key]] | None = None  # whom an undecodable object concerns
    concurrency: int = 4
    concurrency_flag: str = ""  # `--<flag>-workers`; empty: named after the controller
    window: float = 0.0  # seconds between the starts of two passes over one object
    enabled: Callable[[Options], bool] | None = None  # None: always

    @property
    def flag(self) -> str:
        """The name of the setting for its concurrency."""
        return f"{self.concurrency_flag or self.name}_workers"

    @property
    def cached(self) -> frozenset[Kind[Any]]:
        """The kinds that it needs in memory."""
        return frozenset((*(watch.kind for watch in self.watches), *self.reads))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rights that it needs."""
        served = rights.serve(self.kind) if self.kind is not None else ()
        return (*served, *rights.watch(*self.cached), *self.rights)

    def add_indices(self, caches: Caches) -> None:
        """Adds its indices to the stores; an index that another controller has added too is the same."""
        for index in self.indices:
            caches.store(index.kind).add_index(index.name, index.values)

    def start_watches(self, context: Context, controller: Controller) -> None:
        """Lets changes of objects and of Slurm clusters enqueue keys."""
        for watch in self.watches:
            _start(watch, context, controller)
        if (of_unreadable := self.of_unreadable) is not None:
            controller.watch(context.caches.unreadables, lambda obj: of_unreadable(context, obj))
        if (watch_slurm := self.watch_slurm) is not None:
            context.clusters.on_start(lambda cluster: watch_slurm(context, controller, cluster))


def own_key(_context: Context, obj: Resource) -> Iterable[Key]:
    """For the kind that a controller serves: a changed object concerns itself."""
    return (Key(*obj.key),)


def is_deletion(_context: Context, _old: Resource | None, new: Resource | None) -> bool:
    """For watches that only wait for objects to go."""
    return new is None


def _start(watch: Watch[T], context: Context, controller: Controller) -> None:
    when = watch.when
    controller.watch(
        context.caches.store(watch.kind),
        lambda obj: watch.keys(context, obj),
        when=None if when is None else lambda old, new: when(context, old, new),
    )
