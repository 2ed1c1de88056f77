"""How long a user waits, from an act to the moment Slurm or Kubernetes has it; and what the operator costs at rest.

    python benchmarks/latency.py [--runs 5] [--idle 300] [--only PART ...] [--on NAME] [--json FILE]

Everything happens on a local cluster of its own, brought up by `kubeslurm up`, or with `--on` on one that is running
already. Times are medians. Beside them stand what is aimed at, and what Slinky 1.2.1 took on the same local cluster.
Run it on a quiet machine; all of it takes about a quarter of an hour.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # also when run as a script

from benchmarks.report.rows import Row, write
from benchmarks.waiting import acts
from benchmarks.waiting.site import Api, Site
from kubeslurm.cli.up import releases
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.cluster.cluster import Cluster

NAME = "bench-latency"
OTHER = "bench"
PARTS = ("up", "control", "workers", "idle")
SETTLE = 15.0
WRITES = ("apply", "create", "patch", "delete", "update")


class Figure(msgspec.Struct, frozen=True):
    """What a measured value stands beside."""

    goal: float
    slinky: float | None = None


# Slinky's figures: slurm-operator 1.2.1 with its own charts on the same local cluster and the same kind of machine.
FIGURES = {
    "up_to_srun_s": Figure(40),
    "config_change_s": Figure(5, 78.6),
    "controller_pod_delete_s": Figure(6, 18.9),
    "apply_to_idle_s": Figure(10, 23.3),
    "scale_out_s": Figure(2.4, 4.8),
    "scale_in_s": Figure(3, 10.2),
    "cordon_to_drain_s": Figure(0.5, 1.9),
    "uncordon_to_resume_s": Figure(0.5, 1.0),
    "slurm_drain_to_condition_s": Figure(1, 30),  # its period; 2 to 3 s right after other activity
    "pod_delete_to_idle_s": Figure(3, 2.9),
    "idle_writes": Figure(0),
    "idle_cpu_percent": Figure(1),
}


def main() -> None:
    options = parsed()
    cluster = Cluster(options.on or NAME)
    rows: list[Row] = []
    try:
        if not options.on:
            rows += brought_up(cluster, options.runs if "up" in options.only else 0)
        rows += measured(cluster, options.only, options.runs, options.idle)
    finally:
        if not options.on:
            cluster.down(purge=True)
    show(rows)
    write(rows, options.json)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each act is measured; %(default)s")
    parser.add_argument(
        "--idle", type=float, default=300.0, help="seconds to watch the operator do nothing; %(default)g"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts; all")
    parser.add_argument("--on", metavar="NAME", help="a running cluster of `kubeslurm up` with two workers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    return parser.parse_args()


def brought_up(cluster: Cluster, runs: int) -> list[Row]:
    """`kubeslurm up` from nothing running, with everything built, to the output of the first job; it stays up.

    The command itself says when it had that output: afterwards it waits until users can log in, too.
    """
    command = [str(Path(sys.executable).with_name("kubeslurm")), "up", f"--name={cluster.name}"]
    cluster.down(purge=True)
    subprocess.run(command, check=True)  # builds what is missing
    times = []
    for _ in range(runs):
        cluster.down(purge=True)
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = re.search(r"Slurm is up after ([\d.]+) s", said)
        assert found is not None, f"this does not say when it was up: {said}"
        times.append(float(found[1]))
        print(f"up_to_srun_s: {times[-1]:.2f} s", flush=True)
    return [Row("up_to_srun_s", statistics.median(times), "s")] if times else []


def measured(cluster: Cluster, parts: list[str], runs: int, idle: float) -> Iterator[Row]:
    api = Api(cluster.kubeconfig)
    site = Site(cluster, api, releases.SLURM_NAMESPACE, releases.SLURM)
    try:
        if "control" in parts:
            yield from control(site, runs)
        if "workers" in parts:
            yield from workers(site, runs)
        if "idle" in parts:
            yield from at_rest(site, idle)
    finally:
        site.shell.close()
        api.close()


def control(site: Site, runs: int) -> Iterator[Row]:
    plane = acts.Control(site)
    yield median("config_change_s", plane.config_change, runs)
    yield median("controller_pod_delete_s", plane.controller_pod_delete, runs)
    other = Site(site.cluster, site.api, OTHER, f"{OTHER}-slurm")
    release = Release(OTHER, OTHER, releases.CHARTS / "slurm", values(site))
    yield median("apply_to_idle_s", lambda _run: acts.apply_to_idle(other, release), runs)


def workers(site: Site, runs: int) -> Iterator[Row]:
    crew = acts.Workers(site)
    for metric, act in (
        ("scale_out_s", crew.scale_out),
        ("scale_in_s", crew.scale_in),
        ("cordon_to_drain_s", crew.cordon),
        ("uncordon_to_resume_s", crew.uncordon),
        ("slurm_drain_to_condition_s", crew.slurm_drain),
        ("pod_delete_to_idle_s", crew.pod_delete),
    ):
        yield median(metric, act, runs)
    crew.rest()


def median(metric: str, measure: Callable[[int], float], runs: int) -> Row:
    times = []
    for run in range(runs):
        times.append(measure(run))
        print(f"{metric}: {times[-1]:.2f} s", flush=True)
    return Row(metric, statistics.median(times), "s")


def at_rest(site: Site, seconds: float) -> list[Row]:
    """What the operator costs while nothing happens: its writes but for the Lease, and its share of a core."""
    selector = "labelSelector=app.kubernetes.io/name=slurm-operator"
    operators = f"/api/v1/namespaces/{releases.OPERATOR_NAMESPACE}/pods"
    pod = site.api.get(f"{operators}?{selector}")["items"][0]["metadata"]["name"]
    time.sleep(SETTLE)
    before = cost(site.api.text(f"{operators}/{pod}:8080/proxy/metrics"))
    time.sleep(seconds)
    after = cost(site.api.text(f"{operators}/{pod}:8080/proxy/metrics"))
    return [
        Row("idle_writes", after[0] - before[0], "writes"),
        Row("idle_cpu_percent", 100 * (after[1] - before[1]) / seconds, "%"),
    ]


def cost(metrics: str) -> tuple[float, float]:
    """Writes and processor seconds of the operator so far."""
    writes = cpu = 0.0
    for line in metrics.splitlines():
        if line.startswith("process_cpu_seconds_total "):
            cpu = float(line.split()[1])
        found = re.match(r'kubeslurm_api_requests_total\{.*kind="(\w+)".*verb="(\w+)".*\} (\S+)', line)
        if found and found[2] in WRITES and found[1] != "Lease":
            writes += float(found[3])
    return writes, cpu


def values(site: Site) -> dict[str, object]:
    """Values for a second Slurm cluster with the images of the first."""
    found = site.api.get("/api/v1/pods")["items"]
    images = (container["image"] for pod in found for container in pod["spec"]["containers"])
    tags = dict(image.removeprefix("localhost/").split(":") for image in images)
    more = {"nodesets": {"worker": {"replicas": acts.WORKERS, "oversubscribeNode": True}}}
    return releases.slurm(tags, more).values


def show(rows: list[Row]) -> None:
    table = Table("metric", "value", "unit", "goal", "Slinky 1.2.1")
    for row in rows:
        figure = FIGURES[row.metric]
        slinky = "" if figure.slinky is None else f"{figure.slinky:g}"
        table.add_row(row.metric, f"{row.value:.2f}", row.unit, f"{figure.goal:g}", slinky)
    Console().print(table)


if __name__ == "__main__":
    main()
