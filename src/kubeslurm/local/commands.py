"""The commands `kubeslurm local ...`."""

import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from kubeslurm.local.cluster import network, nodespec, state
from kubeslurm.local.cluster.cluster import DEFAULT_NAME, Cluster
from kubeslurm.local.errors import told
from kubeslurm.local.host import doctor
from kubeslurm.local.host.progress import Progress, spoken
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import build as images
from kubeslurm.local.sources import SOURCES


class Group(TyperGroup):
    """Ends with one line and exit code 1 when something is wrong that the user can mend."""

    def invoke(self, ctx: Any) -> Any:  # typer has a click of its own and does not show its types
        with told():
            return super().invoke(ctx)


app = typer.Typer(cls=Group, help="A real multi-node Kubernetes on this machine.", no_args_is_help=True)
image_app = typer.Typer(help="Build images and push them to the cluster's registry.", no_args_is_help=True)
app.add_typer(image_app, name="image")

Name = Annotated[str, typer.Option("--name", help="Which cluster.")]
COLOURS = {"running": "green", "done": "green", "restarting": "red", "stopped": "yellow"}
out = Console(highlight=False, soft_wrap=True)


@app.command()
def up(
    nodes: Annotated[
        int | None, typer.Option(help="Plain nodes, node-1 to node-N. 3, or 0 if --node is given.")
    ] = None,
    node: Annotated[list[str] | None, typer.Option("--node", metavar="SPEC", help=nodespec.HELP)] = None,
    fake_nodes: Annotated[int | None, typer.Option(min=0, help="Nodes that kwok only pretends.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the state that is kept from earlier runs.")] = False,
    name: Name = DEFAULT_NAME,
) -> None:
    """Start the cluster. Without options: as it was the last time, or with three nodes."""
    cluster = Cluster(name)
    wanted = nodespec.nodes(nodes or 0, node or []) if nodes is not None or node else None
    began = time.monotonic()
    with Progress() as progress:
        doctor.require(progress)
        started = cluster.up(wanted, fake_nodes=fake_nodes, fresh=fresh, progress=progress)
    if not started:
        asked = wanted is not None or fake_nodes is not None or fresh
        out.print(f"The cluster {name!r} is running already{'; nothing was changed' if asked else ''}.")
        if asked:
            out.print(f"To change it: `{cluster.command('down')}`, then `up` again.")
        return
    out.print(f"The cluster {name!r} is up after {time.monotonic() - began:.1f} s.")
    out.print(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(
    purge: Annotated[bool, typer.Option("--purge", help="Delete its state too.")] = False, name: Name = DEFAULT_NAME
) -> None:
    """Stop the cluster. Its state stays for the next `up`."""
    stopped = Cluster(name).down(purge=purge)
    out.print(f"The cluster {name!r} is down." if stopped else f"The cluster {name!r} was not running.")


@app.command()
def status(name: Name = DEFAULT_NAME) -> None:
    """Show what every part of the cluster is doing."""
    cluster = Cluster(name)
    if others := [other for other in state.names() if other != name and Cluster(other).running]:
        out.print(f"Also running: {', '.join(others)}")
    seen, spec, reached = cluster.status(), cluster.spec, cluster.home.reached()
    ready = [node for node in seen.nodes if node.name in reached.nodes_ready and node.state == "running"]
    fake = f", {reached.fake_nodes_ready} of {spec.fake_nodes} fake nodes ready" if spec.fake_nodes else ""
    out.print(f"Cluster {name}: {len(ready)} of {len(seen.nodes)} nodes ready{fake}")
    out.print(f"apiserver https://{spec.address}:{network.API_PORT}, registry {cluster.registry}\n")
    table = Table("name", "state", "since", "restarts", "last exit", box=None)
    for part in (*seen.nodes, *seen.components):
        colour = COLOURS.get(part.state, "cyan")
        last_exit = part.last_exit if part.restarts else ""
        since = spoken(time.time() - part.since)
        table.add_row(part.name, f"[{colour}]{part.state}[/]", since, str(part.restarts), last_exit)
    out.print(table)


@app.command()
def kubeconfig(name: Name = DEFAULT_NAME) -> None:
    """Print the path of the cluster's kubeconfig."""
    typer.echo(Cluster(name).kubeconfig)


# kubectl has options of its own that are called --name and --help: ours come before its first word.
@app.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
)
def kubectl(args: Annotated[list[str] | None, typer.Argument()] = None, name: Name = DEFAULT_NAME) -> None:
    """Run kubectl against the cluster."""
    command = Cluster(name).kubectl_command(*(args or []))
    os.execv(command[0], command)  # noqa: S606


@app.command(context_settings={"ignore_unknown_options": True})
def shell(node: str, command: Annotated[list[str] | None, typer.Argument()] = None, name: Name = DEFAULT_NAME) -> None:
    """Open a shell in a node, or run a command there."""
    argv = [*Cluster(name).node_command(node), *(command or ["bash"])]
    os.execvp(argv[0], argv)  # noqa: S606


@app.command()
def logs(
    component: str,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written later.")] = False,
    lines: Annotated[int, typer.Option(min=1, help="How many of the last lines.")] = 100,
    name: Name = DEFAULT_NAME,
) -> None:
    """Print a log: `etcd`, `kube-apiserver`, `node-1/kubelet`, ..., `init`, or `audit` (what pods asked the API)."""
    argv = ["tail", f"--lines={lines}", *(["-F"] if follow else []), str(Cluster(name).log(component))]
    os.execvp(argv[0], argv)  # noqa: S606


@app.command("doctor")
def doctor_command() -> None:
    """Say what this machine lacks for a cluster."""
    findings = doctor.judge(doctor.look())
    table = Table("", "what", "found", "remedy", box=None)
    for finding in findings:
        table.add_row(finding.level.value, finding.name, finding.detail, finding.remedy)
    out.print(table)
    if any(finding.level is doctor.Level.FAIL for finding in findings):
        raise typer.Exit(1)


@app.command("node")
def node_command(
    action: Annotated[Literal["stop", "start", "kill"], typer.Argument(help="In order, again, or by its power cord.")],
    node: str,
    name: Name = DEFAULT_NAME,
) -> None:
    """Stop, start or kill a single node."""
    chosen = Cluster(name).node(node)
    {"stop": chosen.stop, "start": chosen.start, "kill": chosen.kill}[action]()


@image_app.command("build")
def image_build(
    image: Annotated[str, typer.Argument(help="Name of the image.")],
    context: Annotated[Path | None, typer.Option(help="Directory to build in. Default: images/NAME.")] = None,
    containerfile: Annotated[Path | None, typer.Option(help="Default: Containerfile in that directory.")] = None,
    target: Annotated[str | None, typer.Option(help="Stage of the Containerfile.")] = None,
    tag: Annotated[str, typer.Option(help="Tag of the image.")] = "latest",
) -> None:
    """Build localhost/NAME:TAG."""
    directory = context or (containerfile.parent if containerfile else SOURCES / "images" / image)
    recipe = images.Recipe(image, tag, directory, target, containerfile)
    with Progress() as progress:
        out.print(str(images.make(recipe, tasks=Tasks(), progress=progress)))


@image_app.command("push")
def image_push(image: str, name: Name = DEFAULT_NAME) -> None:
    """Push localhost/NAME:TAG to the cluster's registry, where its nodes find it by that name."""
    cluster = Cluster(name)
    cluster.status()  # says so if it is not running
    out.print(images.push(image, cluster.registry, ca=cluster.ca))


@image_app.command("list")
def image_list() -> None:
    """List the images that were built here."""
    table = Table("image", "id", "created", box=None)
    for image in images.list():
        table.add_row(str(image), image.id[:12], image.created)
    out.print(table)
