"""What a large NodeSet costs: seconds, the operator's own CPU and writes, and calls to Slurm, phase by phase.

    python benchmarks/nodeset_scale.py --workers 1000 [--floor] [--json FILE] [--keep]

The Kubernetes nodes are kwok's, the Slurm nodes EXTERNAL ones that exist before the NodeSet does, so that only the
operator and the two control planes work. The operator runs from this tree, and only its own requests are counted:
those to the API server by its metrics, those to slurmctld by its user. Run it on a quiet machine.
"""

import argparse
import asyncio
import logging
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
import structlog
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when run as a script

from benchmarks.report.rows import Row, write
from benchmarks.scale import floor
from benchmarks.scale.ground import Ground, Usage
from benchmarks.scale.stage import Stage

NAME = "bench-nodeset"
STEADY = 60.0


class Figures(msgspec.Struct, frozen=True):
    """What one phase took."""

    seconds: float
    cpu: float
    writes: int
    pod_writes: int
    requests: int
    slurm: int


class Reference(msgspec.Struct, frozen=True):
    """Slinky's slurm-operator 1.2.1 with 1,000 workers on the same kind of machine.

    Its writes and requests are those of the whole cluster: about two writes per worker are the scheduler's and kwok's.
    """

    seconds: float
    cpu: float
    pod_writes: int
    requests: int
    slurm: int


REFERENCE = {
    "create": Reference(135.0, 30.3, 4160, 13907, 2250),
    "steady": Reference(60.0, 26.8, 27, 1412, 39),
    "cordon": Reference(28.0, 8.6, 200, 885, 543),
    "uncordon": Reference(31.4, 10.9, 201, 1555, 545),
    "drain": Reference(7.9, 5.2, 103, 473, 10),
    "scale_in": Reference(21.3, 6.9, 532, 1959, 309),
    "rolling": Reference(502.0, 98.7, 9327, 27570, 13658),
}
REFERENCE_MEMORY = 217


class Results(msgspec.Struct):
    """What is known so far: a run that ends early tells of the phases it has been through."""

    workers: int
    figures: dict[str, Figures] = msgspec.field(default_factory=dict)
    latencies: dict[str, float] = msgspec.field(default_factory=dict)
    memory: float = 0.0  # the operator's peak, in MB
    floor: float = 0.0  # seconds that Kubernetes alone takes for as many pods

    def rows(self) -> list[Row]:
        found = []
        for name, each in self.figures.items():
            found += [
                Row(f"{name}_s", round(each.seconds, 2), "s"),
                Row(f"{name}_cpu_s", round(each.cpu, 2), "s"),
                Row(f"{name}_writes", each.writes, "requests"),
                Row(f"{name}_pod_writes", each.pod_writes, "requests"),
                Row(f"{name}_requests", each.requests, "requests"),
                Row(f"{name}_slurm_rpcs", each.slurm, "calls"),
            ]
        found += [Row(f"{name}_p95_s", round(value, 2), "s") for name, value in self.latencies.items()]
        found += [Row("floor_s", round(self.floor, 2), "s")] if self.floor else []
        return [*found, Row("peak_rss_mb", round(self.memory), "MB")]


class Bench:
    """All phases, in an order in which each starts from the state that the last one left."""

    def __init__(self, stage: Stage, results: Results) -> None:
        self.stage = stage
        self.results = results
        self.workers = results.workers

    async def run(self) -> None:
        stage, some = self.stage, max(self.workers // 10, 1)
        await self.settle()
        await self.phase("create", lambda: self.scale(self.workers))
        await self.settle()
        await self.phase("steady", lambda: asyncio.sleep(STEADY))
        on = {pod.spec.nodeName: pod.spec.hostname for pod in sorted(stage.pods, key=lambda pod: pod.name)[:some]}
        await self.phase("cordon", lambda: self.cordon(on, cordoned=True))
        await self.settle()
        await self.phase("uncordon", lambda: self.cordon(on, cordoned=False))
        await self.settle()
        await self.phase("drain", lambda: self.drain(sorted(on.values())))
        await asyncio.to_thread(stage.slurm.resume, sorted(on.values()))
        await stage.until("the end of the drain", lambda: len(stage.shown("Idle")) == self.workers)
        await self.settle()
        await self.phase("scale_in", lambda: self.scale(self.workers - some))
        await self.settle()
        await self.phase("rolling", lambda: self.roll(self.workers - some))

    async def floor(self) -> None:
        """At the end, so that all nodes are free but that of the one worker that is the model."""
        await self.scale(1)
        await self.settle()
        self.results.floor = await floor.measure(self.stage, self.workers - 1)

    async def phase(self, name: str, act: Callable[[], Awaitable[object]]) -> None:
        """Acts, with the wait for the effect, and notes what it took."""
        before, calls = await asyncio.to_thread(self.usage)
        start = time.monotonic()
        await act()
        seconds = time.monotonic() - start
        after, calls_after = await asyncio.to_thread(self.usage)
        self.results.figures[name] = figures = Figures(
            seconds=seconds,
            cpu=after.cpu - before.cpu,
            writes=after.writes - before.writes,
            pod_writes=after.pod_writes - before.pod_writes,
            requests=after.requests - before.requests,
            slurm=calls_after - calls,
        )
        self.results.memory = self.stage.ground.peak_memory()
        print(f"{name}: {figures}, peak {self.results.memory:.0f} MB", flush=True)

    async def scale(self, replicas: int) -> None:
        await self.stage.change({"replicas": replicas})
        await self.stage.until(
            f"{replicas} workers",
            lambda: len(self.stage.pods) == replicas and len(self.stage.shown("Idle")) == replicas,
        )

    async def cordon(self, on: dict[str, str], *, cordoned: bool) -> None:
        stage = self.stage
        look = stage.drained if cordoned else stage.serving
        looking = asyncio.create_task(stage.first_seen(set(on.values()), look))
        told = await stage.cordon(on, cordoned=cordoned)
        seen = await looking
        self.latency("cordon" if cordoned else "uncordon", (seen[on[host]] - at for host, at in told.items()))

    async def drain(self, nodes: list[str]) -> None:
        start = time.monotonic()
        await asyncio.to_thread(self.stage.slurm.drain, nodes, "bench")
        seen = await self.stage.first_seen(set(nodes), lambda: self.stage.shown("Drain"))
        self.latency("drain", (at - start for at in seen.values()))

    async def roll(self, workers: int) -> None:
        await self.stage.change({"extraConf": "Weight=7"})
        await self.stage.until(
            "the rolling update",
            lambda: self.stage.updated == workers and len(self.stage.shown("Idle")) == workers,
            within=1800 + workers,
        )

    def latency(self, phase: str, seconds: Iterable[float]) -> None:
        """From the act on one node to its effect on the other side, for the slowest but one in twenty."""
        ordered = sorted(seconds)
        self.results.latencies[phase] = ordered[-1] if len(ordered) < 2 else statistics.quantiles(ordered, n=20)[-1]

    def usage(self) -> tuple[Usage, int]:
        return self.stage.ground.usage(), self.stage.slurm.calls()

    async def settle(self) -> None:
        """Until the operator has nothing left to do."""
        last = -1
        while (writes := (await asyncio.to_thread(self.stage.ground.usage)).writes) != last:
            last = writes
            await asyncio.sleep(3)


def show(results: Results) -> None:
    table = Table(title=f"{results.workers} workers (in brackets: slurm-operator 1.2.1 with 1,000)")
    columns = ("seconds", "p95 of one node", "operator CPU s", "writes", "to pods", "API requests", "Slurm calls")
    table.add_column("phase")
    for column in columns:
        table.add_column(column, justify="right")
    for phase, figures in results.figures.items():
        theirs = REFERENCE[phase]
        table.add_row(
            phase,
            f"{figures.seconds:.1f} ({theirs.seconds:.0f})",
            f"{results.latencies[phase]:.2f}" if phase in results.latencies else "",
            f"{figures.cpu:.2f} ({theirs.cpu:.1f})",
            f"{figures.writes}",
            f"{figures.pod_writes} ({theirs.pod_writes})",
            f"{figures.requests} ({theirs.requests})",
            f"{figures.slurm} ({theirs.slurm})",
        )
    console = Console(width=140)
    console.print(table)
    console.print(f"peak memory of the operator: {results.memory:.0f} MB ({REFERENCE_MEMORY})")
    if results.floor:
        console.print(f"as many pods from a bare Deployment, without any operator: {results.floor:.1f} s")


async def measure(ground: Ground, results: Results, *, with_floor: bool) -> None:
    stage = Stage(ground)
    async with stage.opened():
        bench = Bench(stage, results)
        await bench.run()
        if with_floor:
            await bench.floor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--floor", action="store_true", help="also measure what Kubernetes alone takes for the pods")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running afterwards")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    ground, results = Ground(NAME, options.workers), Results(options.workers)
    try:
        ground.up()
        asyncio.run(measure(ground, results, with_floor=options.floor))
    finally:
        ground.down(keep=options.keep)
        if results.figures:
            show(results)
            write(results.rows(), options.json)


if __name__ == "__main__":
    main()
