"""How long a user waits: from an act to the moment Slurm has it.

    python benchmarks/latency.py [--runs 5] [--idle 300] [--json FILE]

Everything happens on a local cluster of its own, brought up by `kubeslurm up`. Times are medians; the figures beside
them are those of slurm-operator 1.2.1 on a machine of the same size. Run it on a quiet machine.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from kubeslurm.cli import helm, releases
from kubeslurm.cli.helm import Release
from kubeslurm.cli.product import Product, access_to
from kubeslurm.local.cluster import Cluster

NAME = "bench-latency"
OTHER = "bench"
WORKERS = 2
REFERENCE = {"config_change_s": 78.6, "controller_pod_delete_s": 18.9, "apply_to_idle_s": 23.3}
WRITES = ("apply", "create", "patch", "delete", "update")


class Row(msgspec.Struct, frozen=True):
    """One measured value."""

    metric: str
    value: float
    unit: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=300.0, help="seconds to watch the operator do nothing")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    cluster = Cluster(NAME)
    try:
        rows = [Row("up_to_srun_s", first_job(cluster), "s")]
        bench = Bench(cluster)
        for metric, measure in (
            ("config_change_s", bench.config_change),
            ("controller_pod_delete_s", bench.controller_pod_delete),
            ("apply_to_idle_s", bench.apply_to_idle),
        ):
            rows.append(Row(metric, median(metric, measure, options.runs), "s"))
        rows += bench.idle(options.idle)
    finally:
        cluster.down(purge=True)
    show(rows)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))


def first_job(cluster: Cluster) -> float:
    """`kubeslurm up` from nothing running, with everything built, to the output of the first job."""
    command = [str(Path(sys.executable).with_name("kubeslurm")), "up", f"--name={NAME}"]
    subprocess.run(command, check=True)  # builds what is missing
    cluster.down(purge=True)
    began = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - began


def median(metric: str, measure: Callable[[int], float], runs: int) -> float:
    times = []
    for run in range(runs):
        times.append(measure(run))
        print(f"{metric}: {times[-1]:.1f} s", flush=True)
    return statistics.median(times)


class Bench:
    """Acts on one Slurm cluster and waits for their effect."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.access = access_to(cluster)
        self.slurm = Release(OTHER, OTHER, releases.CHARTS / "slurm", self._values())

    def config_change(self, run: int) -> float:
        """A setting edited -> slurmctld and all workers run with it, by Slurm's own word."""
        self._wait(lambda: self._idle(releases.SLURM_NAMESPACE, "slurm", WORKERS))
        extra = self._get("controllers.slinky.slurm.net", "slurm")["spec"]["extraConf"]
        kept = "\n".join(line for line in extra.splitlines() if not line.startswith("MaxJobCount"))
        change = {"spec": {"extraConf": f"{kept}\nMaxJobCount={5000 + run}"}}
        began = time.monotonic()
        self._kubectl("patch", "controllers.slinky.slurm.net", "slurm", "--type=merge", f"--patch={json.dumps(change)}")
        self._wait(self._config_is_live)
        took = time.monotonic() - began
        shown = self._slurm(releases.SLURM_NAMESPACE, "slurm", "scontrol", "show", "config")
        assert re.search(rf"MaxJobCount\s+= {5000 + run}\b", shown), "the status said so, but slurmctld does not"
        return took

    def controller_pod_delete(self, _run: int) -> float:
        """slurmctld's pod deleted -> the next one serves and all nodes are idle."""
        uid = self._get("pod", "slurm-controller-0")["metadata"]["uid"]
        began = time.monotonic()
        self._kubectl("delete", "pod", "slurm-controller-0", "--wait=false")
        self._wait(lambda: self._is_other_pod(uid))
        self._wait(lambda: self._idle(releases.SLURM_NAMESPACE, "slurm", WORKERS))
        return time.monotonic() - began

    def apply_to_idle(self, _run: int) -> float:
        """Controller, RestApi and two workers applied -> workers idle, with the images on the nodes."""
        manifest = helm.rendered(self.slurm)
        self.cluster.kubectl("create", "namespace", OTHER)
        began = time.monotonic()
        self.cluster.kubectl(f"--namespace={OTHER}", "apply", "--filename=-", stdin=manifest)
        self._wait(lambda: self._idle(OTHER, f"{OTHER}-slurm", WORKERS))
        took = time.monotonic() - began
        self.cluster.kubectl("delete", "namespace", OTHER, "--wait=true", "--timeout=120s")
        return took

    def idle(self, seconds: float) -> list[Row]:
        """What the operator costs while nothing happens: its writes but for the Lease, and its share of a core."""
        pod = self.cluster.kubectl(
            "--namespace=slinky", "get", "pods", "--selector=app.kubernetes.io/name=slurm-operator", "--output=name"
        ).split()[0].removeprefix("pod/")  # fmt: skip
        before = self._cost(pod)
        time.sleep(seconds)
        after = self._cost(pod)
        return [
            Row("idle_writes", after[0] - before[0], "writes"),
            Row("idle_cpu_percent", 100 * (after[1] - before[1]) / seconds, "%"),
        ]

    def _cost(self, pod: str) -> tuple[float, float]:
        text = self.cluster.kubectl("get", "--raw", f"/api/v1/namespaces/slinky/pods/{pod}:8080/proxy/metrics")
        writes = cpu = 0.0
        for line in text.splitlines():
            if line.startswith("process_cpu_seconds_total "):
                cpu = float(line.split()[1])
            found = re.match(r'kubeslurm_api_requests_total\{.*kind="(\w+)".*verb="(\w+)".*\} (\S+)', line)
            if found and found[2] in WRITES and found[1] != "Lease":
                writes += float(found[3])
        return writes, cpu

    def _values(self) -> dict[str, object]:
        path = "--output=jsonpath={.items[*].spec.containers[*].image}"
        images = self.cluster.kubectl("get", "pods", "--all-namespaces", path).split()
        tags = dict(image.removeprefix("localhost/").split(":") for image in images)
        more = {"nodesets": {"worker": {"replicas": WORKERS, "oversubscribeNode": True}}}
        return releases.slurm(Product(self.access, tags).tags, more).values

    def _idle(self, namespace: str, name: str, count: int) -> bool:
        states = self._slurm(namespace, name, "sinfo", "--noheader", "--Node", "--format=%T").split()
        return states == ["idle"] * count

    def _is_other_pod(self, uid: str) -> bool:
        text = self._kubectl(
            "get", "pod", "slurm-controller-0", "--ignore-not-found", "--output=jsonpath={.metadata.uid}"
        )
        return text not in ("", uid)

    def _config_is_live(self) -> bool:
        found = self._get("controllers.slinky.slurm.net", "slurm")
        status = found["status"]
        seen = status["observedGeneration"] == found["metadata"]["generation"]
        return bool(seen and status["configHash"] == status["wantedConfigHash"])

    def _slurm(self, namespace: str, name: str, *command: str) -> str:
        pod = f"{name}-controller-0"
        args = (f"--namespace={namespace}", "exec", pod, "--container=slurmctld", "--", *command)
        return self.cluster.kubectl(*args, check=False)

    def _kubectl(self, *args: str) -> str:
        return self.cluster.kubectl(f"--namespace={releases.SLURM_NAMESPACE}", *args)

    def _get(self, kind: str, name: str) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = json.loads(self._kubectl("get", kind, name, "--output=json"))
        return found

    def _wait(self, done: Callable[[], bool], within: float = 120.0) -> None:
        end = time.monotonic() + within
        while not done():
            assert time.monotonic() < end, "it does not come to pass"
            time.sleep(0.05)


def show(rows: list[Row]) -> None:
    table = Table("metric", "value", "unit", "slurm-operator 1.2.1")
    for row in rows:
        table.add_row(row.metric, f"{row.value:.1f}", row.unit, str(REFERENCE.get(row.metric, "")))
    Console().print(table)


if __name__ == "__main__":
    main()
