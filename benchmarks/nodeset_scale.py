"""What a large NodeSet costs: seconds, the operator's own CPU and writes, and calls to Slurm, phase by phase.

    python benchmarks/nodeset_scale.py --workers 1000 [--json FILE] [--keep]

The Kubernetes nodes are kwok's, the Slurm nodes EXTERNAL ones that exist before the NodeSet does, so that only the
operator and the two control planes work. A loop beside it plays slurmd: it makes the record of a worker that came back.
Its calls, and those of the scheduler and kwok, are not counted.
"""

import argparse
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from kubeslurm.api.meta import Tree
from kubeslurm.cli.product import Product
from kubeslurm.local import nodespec
from kubeslurm.local.cluster import Cluster
from kubeslurm.local.progress import Progress

NAME = "bench-nodeset"
SET = "slurm-worker-fake"
PREFIX = "fake-"
WRITES = ("apply", "create", "patch", "delete")
# Slinky's slurm-operator 1.2.1 on the same kind of machine with 1,000 workers: seconds, CPU seconds, Slurm calls.
REFERENCE = {
    "create": (135.0, 30.3, 2250),
    "steady": (60.0, 26.8, 39),
    "cordon": (28.0, 8.6, 543),
    "uncordon": (31.4, 10.9, 545),
    "drain": (7.9, 5.2, 10),
    "scale_in": (21.3, 6.9, 309),
    "rolling": (502.0, 98.7, 13658),
}


class Row(msgspec.Struct, frozen=True):
    """One measured value."""

    metric: str
    value: float
    unit: str


class Usage(msgspec.Struct, frozen=True):
    """What the operator has used up so far."""

    cpu: float
    writes: int
    slurm: int


class Bench:
    """A cluster of fake nodes with the real operator and a real slurmctld."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.cluster = Cluster(NAME)
        self.rows: list[Row] = []
        self.helper_calls = 0
        self.playing = threading.Event()

    def prepare(self) -> None:
        """Everything but the NodeSet's pods."""
        with Progress() as progress:
            self.cluster.up(nodespec.nodes(1, []), fake_nodes=self.workers, progress=progress)
            product = Product.local(NAME, None, progress)
            product.install(self.values(), progress)
        self.until("slurmctld", lambda: "UP" in self.slurm("scontrol", "ping"), within=300)
        self.pid = operator_pid(self.cluster)
        self.make_records([f"{PREFIX}{number}" for number in range(self.workers)])
        self.playing.set()
        threading.Thread(target=self.play_slurmd, daemon=True).start()

    def values(self) -> Tree:
        """One NodeSet on kwok's nodes, empty at first."""
        spec = {
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
        }
        fake = {"replicas": 0, "podSpec": spec, "slurmd": {"resources": {"limits": None, "requests": None}}}
        extra = {"MaxNodeCount": self.workers * 2, "SchedulerParameters": "requeue_delay=5"}
        return {"nodesets": {"worker": {"enabled": False}, "fake": fake}, "controller": {"extraConfMap": extra}}

    def run(self) -> None:
        """All phases, in an order in which each starts from the state that the last one left."""
        tenth = max(self.workers // 10, 1)
        some = [f"fake-{number}" for number in range(1, tenth + 1)]
        self.phase("create", lambda: self.scale(self.workers), lambda: self.shown("SlurmNodeStateIdle") == self.workers)
        self.settle()
        self.phase("steady", lambda: None, lambda: True, at_least=60.0)
        self.phase("cordon", lambda: self.kubectl("cordon", *some), lambda: self.drained() >= tenth)
        self.settle()
        self.phase("uncordon", lambda: self.kubectl("uncordon", *some), lambda: self.drained() == 0)
        self.settle()
        names = f"{PREFIX}[0-{tenth - 1}]"
        drain = ("scontrol", "update", f"nodename={names}", "state=drain", "reason=bench")
        self.phase("drain", lambda: self.slurm(*drain), lambda: self.shown("SlurmNodeStateDrain") == tenth)
        self.slurm("scontrol", "update", f"nodename={names}", "state=resume")
        self.settle()
        left = self.workers - tenth
        self.phase("scale_in", lambda: self.scale(left), lambda: len(self.pods()) == left)
        self.settle()
        change = json.dumps({"spec": {"extraConf": "Weight=7"}})
        self.phase(
            "rolling",
            lambda: self.kubectl("patch", "nodesets.slinky.slurm.net", SET, "--type=merge", f"--patch={change}"),
            lambda: self.status().get("updatedReplicas") == left and self.shown("SlurmNodeStateIdle") == left,
            within=1800,
        )
        self.rows.append(Row("peak_rss_mb", round(peak_memory(self.pid)), "MB"))

    def phase(
        self,
        name: str,
        act: Callable[[], object],
        done: Callable[[], bool],
        *,
        within: float = 900.0,
        at_least: float = 0.0,
    ) -> None:
        """Acts, waits for the effect, and notes what it took."""
        before, helped = self.usage(), self.helper_calls
        start = time.monotonic()
        act()
        self.until(name, done, within=within)
        time.sleep(max(at_least - (time.monotonic() - start), 0))
        seconds, after = time.monotonic() - start, self.usage()
        self.rows += [
            Row(f"{name}_s", round(seconds, 2), "s"),
            Row(f"{name}_cpu_s", round(after.cpu - before.cpu, 2), "s"),
            Row(f"{name}_writes", after.writes - before.writes, "requests"),
            Row(f"{name}_slurm_rpcs", after.slurm - before.slurm - (self.helper_calls - helped), "calls"),
        ]

    def settle(self) -> None:
        """Until the operator has nothing left to do."""
        last = -1
        while (writes := self.usage().writes) != last:
            last = writes
            time.sleep(3)

    def until(self, what: str, done: Callable[[], bool], *, within: float) -> None:
        end = time.monotonic() + within
        while not done():
            if time.monotonic() > end:
                raise SystemExit(f"gave up waiting for {what} after {within:.0f} s")
            time.sleep(0.25)

    def play_slurmd(self) -> None:
        """Registers workers whose pod runs and whose record is gone."""
        while self.playing.is_set():
            known = set(self.slurm("sinfo", "--noheader", "--Node", "--format=%N").split())
            running = {
                pod["spec"]["hostname"]
                for pod in self.pods()
                if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
            }
            self.helper_calls += 1
            if missing := sorted(running - known):
                self.make_records(missing)
            time.sleep(1)

    def make_records(self, names: list[str]) -> None:
        self.slurm(
            "scontrol", "create", f"NodeName={','.join(names)}", "NodeAddr=127.0.0.1", "State=EXTERNAL", "CPUs=64"
        )
        self.helper_calls += 1

    def usage(self) -> Usage:
        return Usage(cpu_seconds(self.pid), self.writes(), self.slurm_calls())

    def writes(self) -> int:
        """The operator's own writes, from its metrics."""
        path = "--output=jsonpath={.items[0].status.podIP}"
        selector = "--selector=app.kubernetes.io/name=slurm-operator"
        address = self.cluster.kubectl("--namespace=slinky", "get", "pods", selector, path).strip()
        text = self.cluster.fabric_exec(["curl", "--silent", f"http://{address}:8080/metrics"]).stdout
        found = re.findall(
            r'^kubeslurm_api_requests_total\{(?:.*,)?verb="(\w+)"[^}]*\} ([0-9.e+]+)$', text, re.MULTILINE
        )
        return int(sum(float(count) for verb, count in found if verb in WRITES))

    def slurm_calls(self) -> int:
        """Calls that slurmctld has served, those of this program left out by the caller."""
        text = self.slurm("sdiag")
        self.helper_calls += 1
        return sum(
            int(count) for count in re.findall(r"^\s+REQUEST_\w+\s*\(\s*\d+\) count:(\d+)", text, re.MULTILINE) or ["0"]
        )

    def scale(self, replicas: int) -> None:
        self.kubectl("scale", "nodesets.slinky.slurm.net", SET, f"--replicas={replicas}")

    def pods(self) -> list[Tree]:
        selector = f"--selector=app.kubernetes.io/instance={SET}"
        found: list[Tree] = json.loads(self.kubectl("get", "pods", selector, "--output=json"))["items"]
        return found

    def shown(self, condition: str) -> int:
        return sum(
            1 for pod in self.pods() if any(each["type"] == condition for each in pod["status"].get("conditions", ()))
        )

    def drained(self) -> int:
        self.helper_calls += 1
        return self.slurm("sinfo", "--noheader", "--Node", "--format=%T").count("drain")

    def status(self) -> Tree:
        found: Tree = json.loads(self.kubectl("get", "nodesets.slinky.slurm.net", SET, "--output=json"))
        return dict(found.get("status", {}))

    def slurm(self, *command: str) -> str:
        return self.kubectl("exec", "slurm-controller-0", "--container=slurmctld", "--", *command)

    def kubectl(self, *args: str) -> str:
        return self.cluster.kubectl("--namespace=slurm", *args)

    def stop(self, *, keep: bool) -> None:
        self.playing.clear()
        if not keep:
            self.cluster.down(purge=True)


def operator_pid(cluster: Cluster) -> int:
    """The operator's process of this cluster, as the machine sees it."""
    address = "--output=jsonpath={.items[0].status.containerStatuses[0].containerID}"
    selector = "--selector=app.kubernetes.io/name=slurm-operator"
    container = cluster.kubectl("--namespace=slinky", "get", "pods", selector, address).strip().partition("://")[2]
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if container in path.read_text():
                return int(path.parent.name)
        except OSError:
            continue
    raise SystemExit("the operator's process was not found")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def peak_memory(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def show(rows: list[Row], workers: int) -> None:
    values = {row.metric: row.value for row in rows}
    table = Table(title=f"{workers} workers (in brackets: Slinky 1.2.1 with 1,000)")
    for column in ("phase", "seconds", "operator CPU s", "writes", "Slurm calls"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for phase, (seconds, cpu, calls) in REFERENCE.items():
        table.add_row(
            phase,
            f"{values[f'{phase}_s']:.1f} ({seconds:.0f})",
            f"{values[f'{phase}_cpu_s']:.1f} ({cpu:.1f})",
            f"{values[f'{phase}_writes']:.0f}",
            f"{values[f'{phase}_slurm_rpcs']:.0f} ({calls})",
        )
    Console().print(table, f"peak memory of the operator: {values['peak_rss_mb']:.0f} MB (217)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running afterwards")
    options = parser.parse_args()
    bench = Bench(options.workers)
    try:
        bench.prepare()
        bench.run()
    finally:
        bench.stop(keep=options.keep)
    show(bench.rows, options.workers)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(bench.rows), indent=2))


if __name__ == "__main__":
    main()
