"""Latency of user actions until Slurm or Kubernetes shows their effect, and the cost of the operator when idle.

    python benchmarks/latency.py [--runs 5] [--idle 300] [--only PART ...] [--on NAME] [--json FILE]

Runs on a separate local cluster, started by `kubeslurm up`, or with `--on` on one that is running already. Times are
medians. The table also shows the goals, and the results of Slinky 1.2.1 on the same local cluster. Run it on an idle
machine; it takes about 15 minutes.
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

sys.path.insert(0, str(Path(__file__).parents[1]))  # for imports when run as a script

from benchmarks.actions import control_plane
from benchmarks.actions.control_plane import ControlPlane
from benchmarks.actions.slurm_cluster import Api, SlurmCluster
from benchmarks.actions.workers import Workers
from benchmarks.report.rows import Row, write
from kubeslurm.cli.up import releases
from kubeslurm.cli.up.helm import Release
from kubeslurm.local.cluster.cluster import Cluster

NAME = "bench-latency"
SECOND = "bench"
PARTS = ("up", "control", "workers", "idle")
SETTLE = 15.0
WRITES = ("apply", "create", "patch", "delete", "update")


class Reference(msgspec.Struct, frozen=True):
    """What a measured value is compared with."""

    goal: float
    slinky: float | None = None


# Slinky: slurm-operator 1.2.1 with its own charts, on the same local cluster and the same kind of machine.
REFERENCES = {
    "up_to_srun_s": Reference(40),
    "config_change_s": Reference(5, 78.6),
    "controller_pod_delete_s": Reference(6, 18.9),
    "apply_to_idle_s": Reference(10, 23.3),
    "scale_out_s": Reference(2.4, 4.8),
    "scale_in_s": Reference(3, 10.2),
    "cordon_to_drain_s": Reference(0.5, 1.9),
    "uncordon_to_resume_s": Reference(0.5, 1.0),
    "slurm_drain_to_condition_s": Reference(1, 30),  # its resync period; 2 to 3 s right after other activity
    "pod_delete_to_idle_s": Reference(3, 2.9),
    "idle_writes": Reference(0),
    "idle_cpu_percent": Reference(1),
}


def main() -> None:
    options = parse_options()
    cluster = Cluster(options.on or NAME)
    rows: list[Row] = []
    try:
        if not options.on:
            rows += start_up(cluster, options.runs if "up" in options.only else 0)
        rows += measure(cluster, options.only, options.runs, options.idle)
    finally:
        if not options.on:
            cluster.down(purge=True)
    show(rows)
    write(rows, options.json)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each action is measured; default: %(default)s")
    parser.add_argument(
        "--idle", type=float, default=300.0, help="seconds to measure the idle operator; default: %(default)g"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="measure only these parts; default: all"
    )
    parser.add_argument("--on", metavar="NAME", help="a running cluster of `kubeslurm up` with two workers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    return parser.parse_args()


def start_up(cluster: Cluster, runs: int) -> list[Row]:
    """`kubeslurm up` with everything built, until the output of the first job; the cluster stays up.

    The time is the one that the command prints: after the first job it also waits until users can log in.
    """
    command = [str(Path(sys.executable).with_name("kubeslurm")), "up", f"--name={cluster.name}"]
    cluster.down(purge=True)
    subprocess.run(command, check=True)  # builds what is missing
    times = []
    for _ in range(runs):
        cluster.down(purge=True)
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = re.search(r"Slurm is up after ([\d.]+) s", output)
        assert found is not None, f"no time in the output: {output}"
        times.append(float(found[1]))
        print(f"up_to_srun_s: {times[-1]:.2f} s", flush=True)
    return [Row("up_to_srun_s", statistics.median(times), "s")] if times else []


def measure(cluster: Cluster, parts: list[str], runs: int, idle: float) -> Iterator[Row]:
    api = Api(cluster.kubeconfig)
    slurm = SlurmCluster(cluster, api, releases.SLURM_NAMESPACE, releases.SLURM)
    try:
        if "control" in parts:
            yield from measure_control_plane(slurm, runs)
        if "workers" in parts:
            yield from measure_workers(slurm, runs)
        if "idle" in parts:
            yield from measure_idle(slurm, idle)
    finally:
        slurm.shell.close()
        api.close()


def measure_control_plane(slurm: SlurmCluster, runs: int) -> Iterator[Row]:
    actions = ControlPlane(slurm)
    yield median("config_change_s", actions.config_change, runs)
    yield median("controller_pod_delete_s", actions.controller_pod_delete, runs)
    second = SlurmCluster(slurm.cluster, slurm.api, SECOND, f"{SECOND}-slurm")
    release = Release(SECOND, SECOND, releases.CHARTS / "slurm", second_values(slurm))
    yield median("apply_to_idle_s", lambda _run: control_plane.apply_to_idle(second, release), runs)


def measure_workers(slurm: SlurmCluster, runs: int) -> Iterator[Row]:
    actions = Workers(slurm)
    for metric, action in (
        ("scale_out_s", actions.scale_out),
        ("scale_in_s", actions.scale_in),
        ("cordon_to_drain_s", actions.cordon),
        ("uncordon_to_resume_s", actions.uncordon),
        ("slurm_drain_to_condition_s", actions.slurm_drain),
        ("pod_delete_to_idle_s", actions.pod_delete),
    ):
        yield median(metric, action, runs)
    actions.reset()


def median(metric: str, measure: Callable[[int], float], runs: int) -> Row:
    times = []
    for run in range(runs):
        times.append(measure(run))
        print(f"{metric}: {times[-1]:.2f} s", flush=True)
    return Row(metric, statistics.median(times), "s")


def measure_idle(slurm: SlurmCluster, seconds: float) -> list[Row]:
    """The cost of the idle operator: its writes, without those to its Lease, and its CPU time."""
    selector = "labelSelector=app.kubernetes.io/name=slurm-operator"
    operators = f"/api/v1/namespaces/{releases.OPERATOR_NAMESPACE}/pods"
    pod = slurm.api.get(f"{operators}?{selector}")["items"][0]["metadata"]["name"]
    time.sleep(SETTLE)
    before = cost(slurm.api.text(f"{operators}/{pod}:8080/proxy/metrics"))
    time.sleep(seconds)
    after = cost(slurm.api.text(f"{operators}/{pod}:8080/proxy/metrics"))
    return [
        Row("idle_writes", after[0] - before[0], "writes"),
        Row("idle_cpu_percent", 100 * (after[1] - before[1]) / seconds, "%"),
    ]


def cost(metrics: str) -> tuple[float, float]:
    """Writes and CPU seconds of the operator so far."""
    writes = cpu = 0.0
    for line in metrics.splitlines():
        if line.startswith("process_cpu_seconds_total "):
            cpu = float(line.split()[1])
        found = re.match(r'kubeslurm_api_requests_total\{.*kind="(\w+)".*verb="(\w+)".*\} (\S+)', line)
        if found and found[2] in WRITES and found[1] != "Lease":
            writes += float(found[3])
    return writes, cpu


def second_values(slurm: SlurmCluster) -> dict[str, object]:
    """Values for a second Slurm cluster with the images of the first."""
    found = slurm.api.get("/api/v1/pods")["items"]
    images = (container["image"] for pod in found for container in pod["spec"]["containers"])
    tags = dict(image.removeprefix("localhost/").split(":") for image in images)
    extra = {"nodesets": {"worker": {"replicas": control_plane.WORKERS, "oversubscribeNode": True}}}
    return releases.slurm(tags, extra).values


def show(rows: list[Row]) -> None:
    table = Table("metric", "value", "unit", "goal", "Slinky 1.2.1")
    for row in rows:
        reference = REFERENCES[row.metric]
        slinky = "" if reference.slinky is None else f"{reference.slinky:g}"
        table.add_row(row.metric, f"{row.value:.2f}", row.unit, f"{reference.goal:g}", slinky)
    Console().print(table)


if __name__ == "__main__":
    main()
