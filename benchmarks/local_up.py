"""How long the one-machine Kubernetes takes to start and stop, and what it weighs.

    python benchmarks/local_up.py [--nodes 3] [--runs 3] [--json FILE] [--cold]

Warm is the median of several starts with everything built. With --cold, one more start is made with empty caches, from
making the virtual environment on: about ten minutes on two cores.
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

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when run as a script

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
    """Start and stop with everything in the cache; the first start, which fills the cluster's state, is not counted."""
    kubeslurm = Path(sys.executable).with_name("kubeslurm")
    ups, downs, weights = [], [], []
    try:
        for run in range(runs + 1):
            up = timed([kubeslurm, "local", "up", f"--nodes={nodes}", f"--name={NAME}"])
            weight = memory(NAME)
            down = timed([kubeslurm, "local", "down", f"--name={NAME}"])
            if run:
                ups.append(up)
                downs.append(down)
                weights.append(weight)
    finally:
        Cluster(NAME).down(purge=True)
    middle = statistics.median
    return [
        Row("warm_up_s", round(middle(ups), 2), "s"),
        Row("down_s", round(middle(downs), 2), "s"),
        Row("memory_mb", round(middle(weights)), "MB"),
    ]


def cold(nodes: int) -> list[Row]:
    """Start with empty caches, in directories that are deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="kubeslurm-cold-", dir=Path.home()) as folder:
        here = Path(folder)
        places = {"XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state", "GOCACHE": "go-build", "GOMODCACHE": "go-mod"}
        environment = {variable: str(here / name) for variable, name in places.items()}
        venv = here / "venv"
        environment_s = timed(["make", "--directory", SOURCES, f"VENV={venv}", venv / ".ready"], environment)
        kubeslurm = venv / "bin" / "kubeslurm"
        try:
            up_s, parts = watched([kubeslurm, "local", "up", f"--nodes={nodes}", f"--name={NAME}"], environment)
        finally:
            timed([kubeslurm, "local", "down", f"--name={NAME}"], environment)
    seconds = {"up": environment_s + up_s, "virtual environment": environment_s, **parts}
    return [Row(f"cold_{name.replace(' ', '_')}_s", round(value, 1), "s") for name, value in seconds.items()]


def watched(argv: list[str | Path], environment: Mapping[str, str]) -> tuple[float, dict[str, float]]:
    """Seconds that a command takes, and each of its steps: it says when one begins and when it is done."""
    began = time.monotonic()
    begins: dict[str, float] = {}
    parts: dict[str, float] = {}
    words = [str(word) for word in argv]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}) as command:
        for line in command.stderr or ():
            print(line, end="", file=sys.stderr, flush=True)
            name, _, said = line.rstrip().rpartition(": ")
            if line.endswith(" ...\n"):
                begins[line.removesuffix(" ...\n")] = time.monotonic()
            elif said.startswith("done in") and name in begins:
                parts[name] = time.monotonic() - begins[name]
    if command.returncode:
        sys.exit(f"`{' '.join(words)}` failed: nothing to measure.")
    return time.monotonic() - began, parts


def timed(argv: list[str | Path], environment: Mapping[str, str] | None = None) -> float:
    """Seconds that a command takes; its output is shown, and its failure ends the benchmark."""
    began = time.monotonic()
    words = [str(word) for word in argv]
    if subprocess.run(words, check=False, env={**os.environ, **(environment or {})}).returncode:
        sys.exit(f"`{' '.join(words)}` failed: nothing to measure.")
    return time.monotonic() - began


def memory(name: str) -> float:
    """Megabytes of all processes of a cluster, shared pages counted once (PSS)."""
    record = Cluster(name).home.init()
    assert record is not None, "the cluster is not running"
    kilobytes = 0
    for pid in family(record.pid):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        kilobytes += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return kilobytes * 1024 / 1e6


def family(root: int) -> set[int]:
    """A process and everything below it, in whatever namespaces."""
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
