"""What `status` says."""

from pathlib import Path

from rich.table import Table

from kubeslurm.local import network
from kubeslurm.local.control import Reply
from kubeslurm.local.progress import spoken
from kubeslurm.local.readiness import log_name, tail
from kubeslurm.local.state import ClusterSpec, Reached

_COLOURS = {"running": "green", "done": "green", "restarting": "red", "stopped": "yellow"}


def summary(spec: ClusterSpec, reply: Reply, reached: Reached) -> str:
    """One paragraph: is it up, and where."""
    ready = [node for node in reply.nodes if node.name in reached.nodes_ready and node.state == "running"]
    lines = [
        f"Cluster {spec.name}: {len(ready)} of {len(reply.nodes)} nodes ready"
        + (f", {reached.fake_nodes_ready} of {spec.fake_nodes} fake nodes ready" if spec.fake_nodes else ""),
        f"apiserver https://{spec.address}:{network.API_PORT}, registry {spec.address}:{network.REGISTRY_PORT}",
    ]
    return "\n".join(lines) + "\n"


def table(reply: Reply, now: float) -> Table:
    """One row per node and component."""
    rows = Table("name", "state", "since", "restarts", "last exit", box=None)
    for node in reply.nodes:
        rows.add_row(node.name, _coloured(node.state), spoken(now - node.since), str(node.restarts), "")
    for component in reply.components:
        rows.add_row(
            component.name,
            _coloured(component.state),
            spoken(now - component.since),
            str(component.restarts),
            component.last_exit if component.restarts else "",
        )
    return rows


def last_words(reply: Reply, logs: Path) -> list[str]:
    """The ends of the logs of what is not well."""
    lines = []
    for component in reply.components:
        if component.state == "restarting":
            lines.append(f"\n{component.name}:")
            lines += [f"  {line}" for line in tail(logs / log_name(component.name))]
    return lines


def _coloured(text: str) -> str:
    colour = _COLOURS.get(text, "cyan")
    return f"[{colour}]{text}[/]"
