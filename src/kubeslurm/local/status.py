"""What every part of a running cluster is doing, as `status` shows it."""

import time

import msgspec
from rich.table import Table

from kubeslurm.local import network
from kubeslurm.local.progress import spoken
from kubeslurm.local.state import ClusterSpec, Home, NodeReport, Reached, load
from kubeslurm.local.supervisor import Condition

_COLOURS = {"running": "green", "done": "green", "restarting": "red", "stopped": "yellow"}


class Status(msgspec.Struct, frozen=True):
    """Nodes with their process numbers on the host, and the programs that run in them and beside them."""

    components: list[Condition]
    nodes: list[Condition]


def read(home: Home, spec: ClusterSpec) -> Status:
    """What the cluster's init and its nodes wrote down last."""
    names = {node.name for node in spec.nodes}
    seen = load(home.run / "status.json", list[Condition]) or []
    components = [condition for condition in seen if condition.name not in names]
    nodes = [condition for condition in seen if condition.name in names]
    for node in nodes:
        report = load(home.run / f"{node.name}.json", NodeReport) if node.pid else None
        node.pid = report.pid if report else 0
        node.state = "starting" if node.state == "running" and not report else node.state
        components += report.components if report else []
    return Status(components, nodes)


def summary(spec: ClusterSpec, status: Status, reached: Reached) -> str:
    """One paragraph: is it up, and where."""
    ready = [node for node in status.nodes if node.name in reached.nodes_ready and node.state == "running"]
    fake = f", {reached.fake_nodes_ready} of {spec.fake_nodes} fake nodes ready" if spec.fake_nodes else ""
    return (
        f"Cluster {spec.name}: {len(ready)} of {len(status.nodes)} nodes ready{fake}\n"
        f"apiserver https://{spec.address}:{network.API_PORT}, registry {spec.address}:{network.REGISTRY_PORT}\n"
    )


def table(status: Status) -> Table:
    """One row per node and component."""
    rows = Table("name", "state", "since", "restarts", "last exit", box=None)
    for part in (*status.nodes, *status.components):
        state = f"[{_COLOURS.get(part.state, 'cyan')}]{part.state}[/]"
        last_exit = part.last_exit if part.restarts else ""
        rows.add_row(part.name, state, spoken(time.time() - part.since), str(part.restarts), last_exit)
    return rows
