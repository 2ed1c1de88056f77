"""How long the one-machine Kubernetes takes to start and stop, and how much memory it uses.

    python benchmarks/local_up.py [--nodes 3] [--runs 3] [--json FILE] [--cold]

Warm results are the median of several starts with everything built. With --cold, it also measures a start with empty
caches, including the virtual environment: about ten minutes on two cores.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # for imports when run as a script

from benchmarks.report.rows import Row, write
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.sources import SOURCES

NAME = "bench-up"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    rows = cold(options.nodes) if options.cold else []
    rows += warm(options.nodes, options.runs)
    show(rows)
    write(rows, options.json)


def warm(nodes: int, runs: int) -> list[Row]:
    """Start and stop with everything in the cache; the first start, which creates the state, is not counted."""
    kubeslurm = Path(sys.executable).with_name("kubeslurm")
    ups, downs, sizes = [], [], []
    try:
        for run in range(runs + 1):
            up = timed([kubeslurm, "local", "up", f"--nodes={nodes}", f"--name={NAME}"])
            size = memory(NAME)
            down = timed([kubeslurm, "local", "down", f"--name={NAME}"])
            if run:
                ups.append(up)
                downs.append(down)
                sizes.append(size)
    finally:
        Cluster(NAME).down(purge=True)
    median = statistics.median
    return [
        Row("warm_up_s", round(median(ups), 2), "s"),
        Row("down_s", round(median(downs), 2), "s"),
        Row("memory_mb", round(median(sizes)), "MB"),
    ]


def cold(nodes: int) -> list[Row]:
    """Start with empty caches, in directories that are deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="kubeslurm-cold-", dir=Path.home()) as folder:
        base = Path(folder)
        folders = {"XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state", "GOCACHE": "go-build", "GOMODCACHE": "go-mod"}
        environment = {variable: str(base / name) for variable, name in folders.items()}
        venv = base / "venv"
        environment_s = timed(["make", "--directory", SOURCES, f"VENV={venv}", venv / ".ready"], environment)
        kubeslurm = venv / "bin" / "kubeslurm"
        try:
            up_s, steps = timed_steps([kubeslurm, "local", "up", f"--nodes={nodes}", f"--name={NAME}"], environment)
        finally:
            timed([kubeslurm, "local", "down", f"--name={NAME}"], environment)
    seconds = {"up": environment_s + up_s, "virtual environment": environment_s, **steps}
    return [Row(f"cold_{name.replace(' ', '_')}_s", round(value, 1), "s") for name, value in seconds.items()]


def timed_steps(argv: list[str | Path], environment: Mapping[str, str]) -> tuple[float, dict[str, float]]:
    """Seconds that a command takes, and those of each step, from the lines that it prints."""
    start = time.monotonic()
    started: dict[str, float] = {}
    steps: dict[str, float] = {}
    command = [str(word) for word in argv]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        for line in process.stderr or ():
            print(line, end="", file=sys.stderr, flush=True)
            name, _, result = line.rstrip().rpartition(": ")
            if line.endswith(" ...\n"):
                started[line.removesuffix(" ...\n")] = time.monotonic()
            elif result.startswith("done in") and name in started:
                steps[name] = time.monotonic() - started[name]
    if process.returncode:
        sys.exit(f"`{' '.join(command)}` failed.")
    return time.monotonic() - start, steps


def timed(argv: list[str | Path], environment: Mapping[str, str] | None = None) -> float:
    """Seconds that a command takes; if it fails, the benchmark ends."""
    start = time.monotonic()
    command = [str(word) for word in argv]
    if subprocess.run(command, check=False, env={**os.environ, **(environment or {})}).returncode:
        sys.exit(f"`{' '.join(command)}` failed.")
    return time.monotonic() - start


def memory(name: str) -> float:
    """Megabytes of all processes of a cluster; shared pages count once (PSS)."""
    record = Cluster(name).home.init()
    assert record is not None, "the cluster is not running"
    kilobytes = 0
    for pid in process_tree(record.pid):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has exited
        kilobytes += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return kilobytes * 1024 / 1e6


def process_tree(root: int) -> set[int]:
    """A process and all its descendants, in any namespace."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(status.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def show(rows: list[Row]) -> None:
    table = Table("metric", "value", "unit")
    for row in rows:
        table.add_row(row.metric, f"{row.value:g}", row.unit)
    Console().print(table)


if __name__ == "__main__":
    main()
