"""What it costs to watch a large cluster: our engine compared with a plain client-go informer.

    python benchmarks/runtime.py [--json FILE] [--pods 10000] [--nodes 10000] [--only replay|real]

Two tables: a replay of prepared bytes (maximum throughput), and a real kube-apiserver with as many pods and nodes.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # for imports when run as a script

from benchmarks.informer.follower import Result
from benchmarks.informer.population import Population
from benchmarks.report.rows import Row, write
from kubeslurm.local.cluster.cluster import Cluster

HERE = Path(__file__).parent
NAME = "bench-runtime"
CORES = sorted(os.sched_getaffinity(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--replayed", type=int, default=40_000, metavar="EVENTS")
    parser.add_argument("--changes", type=int, default=5_000, metavar="EVENTS", help="changes on the real apiserver")
    parser.add_argument("--only", choices=["replay", "real"])
    options = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="kubeslurm-bench-") as folder:
        program = build(Path(folder))
        if options.only != "real":
            results = replay(program, options.pods, options.replayed)
            show(f"Byte replay: {options.pods:,} pods, {options.replayed:,} changes", results)
            rows += replay_rows(results)
        if options.only != "replay":
            results = real(program, Path(folder), options.pods, options.nodes, options.changes)
            show(
                f"Real apiserver: {options.pods:,} pods and {options.nodes:,} nodes, {options.changes:,} changes",
                results,
            )
            rows += real_rows(results)
    write(rows, options.json)


def build(folder: Path) -> Path:
    """Build the Go program."""
    program = folder / "goinformer"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "goinformer", check=True)
    return program


def replay(program: Path, pods: int, events: int) -> dict[str, Result]:
    """Each program reads the same watch, replayed from memory, pinned to its own core."""
    argv = [str(program), "serve", f"-pods={pods}", f"-events={events}"]
    with running(argv, core=CORES[0]) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        go = [str(program), "follow", f"-server={url}", f"-events={events}"]
        return {
            "ours": finish(follower(f"--server={url}", f"--events={events}"), core=CORES[-1]),
            "go": finish(go, core=CORES[-1]),
            "go, JSON": finish([*go, "-content-type=application/json"], core=CORES[-1]),
        }


def real(program: Path, folder: Path, pods: int, nodes: int, changes: int) -> dict[str, Result]:
    """Both programs watch the same cluster, one after the other, while the same number of pods change."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    cluster = Cluster(NAME)
    cluster.up([])
    try:
        population = Population(cluster.kubeconfig)
        asyncio.run(population.create_namespace())
        # It would mark nodes without kubelets as lost, and write all the time.
        with paused(cluster, "kube-controller-manager"):
            asyncio.run(population.create(pods, nodes))
            kubeconfig = str(cluster.kubeconfig)
            ours = follower(f"--kubeconfig={kubeconfig}", "--nodes", f"--events={changes}")
            go = [str(program), "follow", f"-kubeconfig={kubeconfig}", "-nodes", f"-events={changes}"]
            results = {}
            for name, argv in (("ours", ours), ("go", go)):
                with running(argv) as process:
                    assert process.stdout is not None
                    assert process.stdout.readline().strip() == "synced", f"{name} did not sync"
                    asyncio.run(population.change(changes))
                    results[name] = result_of(process)
            return results
    finally:
        cluster.down(purge=True)


@contextmanager
def paused(cluster: Cluster, component: str) -> Iterator[None]:
    """Pause a component of the control plane."""
    pid = cluster.host_pid(component)
    assert pid, f"{component} has no process"
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def follower(*args: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.informer.follower", *args]


@contextmanager
def running(argv: list[str], *, core: int | None = None) -> Iterator["subprocess.Popen[str]"]:
    pin = [] if core is None else ["taskset", "--cpu-list", str(core)]
    process = subprocess.Popen([*pin, *argv], stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def finish(argv: list[str], *, core: int) -> Result:
    with running(argv, core=core) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return result_of(process)


def result_of(process: "subprocess.Popen[str]") -> Result:
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.readline(), type=Result)


def replay_rows(results: dict[str, Result]) -> list[Row]:
    rows = []
    for prefix, name in (("", "ours"), ("go_", "go"), ("go_json_", "go, JSON")):
        result = results[name]
        rows += [
            Row(f"{prefix}replay_events_per_s", round(result.events_per_s), "1/s"),
            Row(f"{prefix}replay_cpu_us_per_event", round(result.cpu_us_per_event, 1), "us"),
        ]
    return rows


def real_rows(results: dict[str, Result]) -> list[Row]:
    rows = []
    for prefix, name in (("", "ours"), ("go_", "go")):
        result = results[name]
        rows += [
            Row(f"{prefix}sync_s", round(result.sync_s, 2), "s"),
            Row(f"{prefix}cpu_us_per_event", round(result.cpu_us_per_event, 1), "us"),
            Row(f"{prefix}peak_rss_mb", round(result.peak_rss_mb), "MB"),
            Row(f"{prefix}worst_stall_ms", round(result.worst_stall_ms), "ms"),
        ]
    return rows


def show(title: str, results: dict[str, Result]) -> None:
    """Print one column for each program, and the ratio of ours to each of the others."""
    others = [name for name in results if name != "ours"]
    table = Table("", "ours", *others, *(f"ours / {name}" for name in others), title=title)
    measures: dict[str, Callable[[Result], float]] = {
        "sync, s": lambda result: result.sync_s,
        "events/s": lambda result: result.events_per_s,
        "CPU, us/event": lambda result: result.cpu_us_per_event,
        "peak RSS, MB": lambda result: result.peak_rss_mb,
        "worst stall, ms": lambda result: result.worst_stall_ms,
    }
    for label, measure in measures.items():
        values = {name: measure(result) for name, result in results.items()}
        ratios = [f"{values['ours'] / values[name]:.2f}" for name in others]
        table.add_row(label, *(f"{value:,.1f}" for value in values.values()), *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
