"""A snapshot with a client whose answers a test has set."""

from typing import Any

from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.models import Node, Nodes
from kubeslurm.slurm.snapshot import Snapshot
from tests.support.clock import HandClock

A, B = Node(name="a", state=("IDLE",)), Node(name="b", state=("IDLE",))


class Script:
    """A client that answers from a list; a read may first let something else happen."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.lists: list[Nodes | SlurmError | None] = []
        self.singles: dict[str, Node | None] = {}
        self.since: list[int | None] = []
        self.cost = 0.0
        self.meanwhile: Any = None

    async def nodes(self, since: int | None = None) -> Nodes | None:
        self.since.append(since)
        if self.meanwhile is not None:
            await self.meanwhile()
        self.clock.now += self.cost
        answer = self.lists.pop(0)
        if isinstance(answer, SlurmError):
            raise answer
        return answer

    async def node(self, name: str) -> Node | None:
        return self.singles[name]


def listed(*nodes: Node, at: int = 1) -> Nodes:
    return Nodes(nodes=nodes, last_update=at)


def make() -> tuple[Snapshot, Script, HandClock]:
    clock = HandClock()
    script = Script(clock)
    client: Any = script
    return Snapshot(client, clock=clock, time_suspended=lambda: 0.0), script, clock
