"""What a large NodeSet costs, phase by phase: seconds, CPU and writes of the operator, and RPCs to Slurm.

    python benchmarks/nodeset_scale.py --workers 1000 [--floor] [--json FILE] [--keep]

Kubernetes nodes are simulated by kwok, and Slurm nodes are EXTERNAL ones that exist before the NodeSet: only the
operator and the two control planes do real work. The operator runs from this tree, and only its own requests count:
those to the API server from its metrics, those to slurmctld by its user. Run it on an idle machine.
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

sys.path.insert(0, str(Path(__file__).parents[1]))  # for imports when run as a script

from benchmarks.report.rows import Row, write
from benchmarks.scale import floor
from benchmarks.scale.driver import Driver
from benchmarks.scale.environment import Environment, Usage

NAME = "bench-nodeset"
STEADY_SECONDS = 60.0


class Cost(msgspec.Struct, frozen=True):
    """What one phase cost."""

    seconds: float
    cpu: float
    writes: int
    pod_writes: int
    requests: int
    slurm: int


class Reference(msgspec.Struct, frozen=True):
    """Slinky's slurm-operator 1.2.1 with 1,000 workers on the same kind of machine.

    Its writes and requests are those of the whole cluster; about two writes per worker come from scheduler and kwok.
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
    """Results of the phases so far; a run that is interrupted shows them."""

    workers: int
    costs: dict[str, Cost] = msgspec.field(default_factory=dict)
    latencies: dict[str, float] = msgspec.field(default_factory=dict)
    memory: float = 0.0  # peak RSS of the operator, in MB
    floor: float = 0.0  # seconds that Kubernetes alone needs for as many pods

    def rows(self) -> list[Row]:
        rows = []
        for name, each in self.costs.items():
            rows += [
                Row(f"{name}_s", round(each.seconds, 2), "s"),
                Row(f"{name}_cpu_s", round(each.cpu, 2), "s"),
                Row(f"{name}_writes", each.writes, "requests"),
                Row(f"{name}_pod_writes", each.pod_writes, "requests"),
                Row(f"{name}_requests", each.requests, "requests"),
                Row(f"{name}_slurm_rpcs", each.slurm, "RPCs"),
            ]
        rows += [Row(f"{name}_p95_s", round(value, 2), "s") for name, value in self.latencies.items()]
        rows += [Row("floor_s", round(self.floor, 2), "s")] if self.floor else []
        return [*rows, Row("peak_rss_mb", round(self.memory), "MB")]


class Bench:
    """Runs all phases; each starts from the state that the phase before has left."""

    def __init__(self, driver: Driver, results: Results) -> None:
        self.driver = driver
        self.results = results
        self.workers = results.workers

    async def run(self) -> None:
        driver, count = self.driver, max(self.workers // 10, 1)
        await self.settle()
        await self.phase("create", lambda: self.scale(self.workers))
        await self.settle()
        await self.phase("steady", lambda: asyncio.sleep(STEADY_SECONDS))
        pods = sorted(driver.pods, key=lambda pod: pod.name)[:count]
        slurm_nodes = {pod.spec.nodeName: pod.spec.hostname for pod in pods}
        await self.phase("cordon", lambda: self.cordon(slurm_nodes, cordoned=True))
        await self.settle()
        await self.phase("uncordon", lambda: self.cordon(slurm_nodes, cordoned=False))
        await self.settle()
        await self.phase("drain", lambda: self.drain(sorted(slurm_nodes.values())))
        await asyncio.to_thread(driver.slurm.resume, sorted(slurm_nodes.values()))
        await driver.wait_until("the end of the drain", lambda: len(driver.pods_in_state("Idle")) == self.workers)
        await self.settle()
        await self.phase("scale_in", lambda: self.scale(self.workers - count))
        await self.settle()
        await self.phase("rolling", lambda: self.roll(self.workers - count))

    async def floor(self) -> None:
        """Measured last: one worker is kept as the template of the pods, and all other nodes are free."""
        await self.scale(1)
        await self.settle()
        self.results.floor = await floor.measure(self.driver, self.workers - 1)

    async def phase(self, name: str, action: Callable[[], Awaitable[object]]) -> None:
        """Run an action, which also waits for its effect, and record what it cost."""
        before, rpcs_before = await asyncio.to_thread(self.usage)
        start = time.monotonic()
        await action()
        seconds = time.monotonic() - start
        after, rpcs = await asyncio.to_thread(self.usage)
        self.results.costs[name] = cost = Cost(
            seconds=seconds,
            cpu=after.cpu - before.cpu,
            writes=after.writes - before.writes,
            pod_writes=after.pod_writes - before.pod_writes,
            requests=after.requests - before.requests,
            slurm=rpcs - rpcs_before,
        )
        self.results.memory = self.driver.environment.peak_memory()
        print(f"{name}: {cost}, peak {self.results.memory:.0f} MB", flush=True)

    async def scale(self, replicas: int) -> None:
        await self.driver.patch_nodeset({"replicas": replicas})
        await self.driver.wait_until(
            f"{replicas} workers",
            lambda: len(self.driver.pods) == replicas and len(self.driver.pods_in_state("Idle")) == replicas,
        )

    async def cordon(self, slurm_nodes: dict[str, str], *, cordoned: bool) -> None:
        """`slurm_nodes` has the Slurm node of each Kubernetes node."""
        driver = self.driver
        list_nodes = driver.drained_nodes if cordoned else driver.idle_nodes
        watching = asyncio.create_task(driver.first_seen(set(slurm_nodes.values()), list_nodes))
        sent = await driver.cordon(slurm_nodes, cordoned=cordoned)
        seen = await watching
        self.latency("cordon" if cordoned else "uncordon", (seen[slurm_nodes[host]] - at for host, at in sent.items()))

    async def drain(self, nodes: list[str]) -> None:
        start = time.monotonic()
        await asyncio.to_thread(self.driver.slurm.drain, nodes, "bench")
        seen = await self.driver.first_seen(set(nodes), lambda: self.driver.pods_in_state("Drain"))
        self.latency("drain", (at - start for at in seen.values()))

    async def roll(self, workers: int) -> None:
        await self.driver.patch_nodeset({"extraConf": "Weight=7"})
        await self.driver.wait_until(
            "the rolling update",
            lambda: self.driver.updated == workers and len(self.driver.pods_in_state("Idle")) == workers,
            timeout=1800 + workers,
        )

    def latency(self, phase: str, seconds: Iterable[float]) -> None:
        """The 95th percentile of the time from the change of a node to its effect."""
        ordered = sorted(seconds)
        self.results.latencies[phase] = ordered[-1] if len(ordered) < 2 else statistics.quantiles(ordered, n=20)[-1]

    def usage(self) -> tuple[Usage, int]:
        return self.driver.environment.usage(), self.driver.slurm.operator_rpcs()

    async def settle(self) -> None:
        """Wait until the operator writes nothing any more."""
        last = -1
        while (writes := (await asyncio.to_thread(self.driver.environment.usage)).writes) != last:
            last = writes
            await asyncio.sleep(3)


def show(results: Results) -> None:
    table = Table(title=f"{results.workers} workers (in brackets: slurm-operator 1.2.1 with 1,000 workers)")
    columns = ("seconds", "p95 of one node", "operator CPU s", "writes", "to pods", "API requests", "Slurm RPCs")
    table.add_column("phase")
    for column in columns:
        table.add_column(column, justify="right")
    for phase, cost in results.costs.items():
        slinky = REFERENCE[phase]
        table.add_row(
            phase,
            f"{cost.seconds:.1f} ({slinky.seconds:.0f})",
            f"{results.latencies[phase]:.2f}" if phase in results.latencies else "",
            f"{cost.cpu:.2f} ({slinky.cpu:.1f})",
            f"{cost.writes}",
            f"{cost.pod_writes} ({slinky.pod_writes})",
            f"{cost.requests} ({slinky.requests})",
            f"{cost.slurm} ({slinky.slurm})",
        )
    console = Console(width=140)
    console.print(table)
    console.print(f"peak memory of the operator: {results.memory:.0f} MB ({REFERENCE_MEMORY})")
    if results.floor:
        console.print(f"the same number of pods from a Deployment, without the operator: {results.floor:.1f} s")


async def measure(environment: Environment, results: Results, *, with_floor: bool) -> None:
    driver = Driver(environment)
    async with driver.opened():
        bench = Bench(driver, results)
        await bench.run()
        if with_floor:
            await bench.floor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--floor", action="store_true", help="also measure how long Kubernetes alone takes")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running afterwards")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is stopped
    environment, results = Environment(NAME, options.workers), Results(options.workers)
    try:
        environment.up()
        asyncio.run(measure(environment, results, with_floor=options.floor))
    finally:
        environment.down(keep=options.keep)
        if results.costs:
            show(results)
            write(results.rows(), options.json)


if __name__ == "__main__":
    main()
