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
from kubeslurm.local.errors import exit_on_error
from kubeslurm.local.host import doctor
from kubeslurm.local.host.progress import Progress, format_duration
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.sources import SOURCES


class Group(TyperGroup):
    """Commands that report errors as one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # typer vendors click and does not export its types
        with exit_on_error():
            return super().invoke(ctx)


app = typer.Typer(cls=Group, help="A real multi-node Kubernetes on this machine.", no_args_is_help=True)
image_app = typer.Typer(help="Build images and push them to the cluster's registry.", no_args_is_help=True)
app.add_typer(image_app, name="image")

Name = Annotated[str, typer.Option("--name", help="Name of the cluster.")]
COLOURS = {"running": "green", "done": "green", "restarting": "red", "stopped": "yellow"}
out = Console(highlight=False, soft_wrap=True)


@app.command()
def up(
    nodes: Annotated[
        int | None, typer.Option(help="Number of plain nodes, node-1 to node-N. Default: 3, or 0 if --node is given.")
    ] = None,
    node: Annotated[list[str] | None, typer.Option("--node", metavar="SPEC", help=nodespec.HELP)] = None,
    fake_nodes: Annotated[int | None, typer.Option(min=0, help="Number of fake nodes, simulated by kwok.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the state of earlier runs first.")] = False,
    name: Name = DEFAULT_NAME,
) -> None:
    """Start the cluster. Without options: with the nodes of the last time, or with three."""
    cluster = Cluster(name)
    specs = nodespec.nodes(nodes or 0, node or []) if nodes is not None or node else None
    start = time.monotonic()
    with Progress() as progress:
        doctor.require(progress)
        started = cluster.up(specs, fake_nodes=fake_nodes, fresh=fresh, progress=progress)
    if not started:
        ignored = specs is not None or fake_nodes is not None or fresh
        out.print(f"The cluster {name!r} is running already{'; nothing was changed' if ignored else ''}.")
        if ignored:
            out.print(f"To change it: `{cluster.command('down')}`, then `up` again.")
        return
    out.print(f"The cluster {name!r} is up after {time.monotonic() - start:.1f} s.")
    out.print(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(
    purge: Annotated[bool, typer.Option("--purge", help="Delete the state of the cluster, too.")] = False,
    name: Name = DEFAULT_NAME,
) -> None:
    """Stop the cluster. Its state is kept for the next `up`."""
    stopped = Cluster(name).down(purge=purge)
    out.print(f"The cluster {name!r} is down." if stopped else f"The cluster {name!r} was not running.")


@app.command()
def status(name: Name = DEFAULT_NAME) -> None:
    """Show the state of all nodes and components."""
    cluster = Cluster(name)
    if others := [other for other in state.names() if other != name and Cluster(other).running]:
        out.print(f"Also running: {', '.join(others)}")
    current, spec, readiness = cluster.status(), cluster.spec, cluster.home.readiness()
    ready = [node for node in current.nodes if node.name in readiness.nodes_ready and node.state == "running"]
    fake = f", {readiness.fake_nodes_ready} of {spec.fake_nodes} fake nodes ready" if spec.fake_nodes else ""
    out.print(f"Cluster {name}: {len(ready)} of {len(current.nodes)} nodes ready{fake}")
    out.print(f"apiserver https://{spec.address}:{network.API_PORT}, registry {cluster.registry}\n")
    table = Table("name", "state", "since", "restarts", "last exit", box=None)
    for each in (*current.nodes, *current.components):
        colour = COLOURS.get(each.state, "cyan")
        last_exit = each.last_exit if each.restarts else ""
        since = format_duration(time.time() - each.since)
        table.add_row(each.name, f"[{colour}]{each.state}[/]", since, str(each.restarts), last_exit)
    out.print(table)


@app.command()
def kubeconfig(name: Name = DEFAULT_NAME) -> None:
    """Print the path of the cluster's kubeconfig."""
    typer.echo(Cluster(name).kubeconfig)


# kubectl has its own options --name and --help: ours must come before its first argument.
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
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also print lines that are written from now on.")
    ] = False,
    lines: Annotated[int, typer.Option(min=1, help="Number of lines to print, from the end.")] = 100,
    name: Name = DEFAULT_NAME,
) -> None:
    """Print a log: `etcd`, `kube-apiserver`, `node-1/kubelet`, ..., `init`, or `audit` (API requests of pods)."""
    argv = ["tail", f"--lines={lines}", *(["-F"] if follow else []), str(Cluster(name).log(component))]
    os.execvp(argv[0], argv)  # noqa: S606


@app.command("doctor")
def doctor_command() -> None:
    """Check whether this machine can run a cluster."""
    findings = doctor.evaluate(doctor.inspect())
    table = Table("", "check", "result", "remedy", box=None)
    for finding in findings:
        table.add_row(finding.level.value, finding.name, finding.detail, finding.remedy)
    out.print(table)
    if any(finding.level is doctor.Level.FAIL for finding in findings):
        raise typer.Exit(1)


@app.command("node")
def node_command(
    action: Annotated[
        Literal["stop", "start", "kill"], typer.Argument(help="`kill` ends it at once, like a power failure.")
    ],
    node: str,
    name: Name = DEFAULT_NAME,
) -> None:
    """Stop, start or kill a single node."""
    target = Cluster(name).node(node)
    {"stop": target.stop, "start": target.start, "kill": target.kill}[action]()


@image_app.command("build")
def image_build(
    image: Annotated[str, typer.Argument(help="Name of the image.")],
    context: Annotated[Path | None, typer.Option(help="Build context. Default: images/NAME.")] = None,
    containerfile: Annotated[Path | None, typer.Option(help="Default: Containerfile in the context.")] = None,
    target: Annotated[str | None, typer.Option(help="Stage of the Containerfile to build.")] = None,
    tag: Annotated[str, typer.Option(help="Tag of the image.")] = "latest",
) -> None:
    """Build localhost/NAME:TAG."""
    directory = context or (containerfile.parent if containerfile else SOURCES / "images" / image)
    spec = builder.BuildSpec(image, tag, directory, target, containerfile)
    with Progress() as progress:
        out.print(str(builder.build(spec, tasks=Tasks(), progress=progress)))


@image_app.command("push")
def image_push(image: str, name: Name = DEFAULT_NAME) -> None:
    """Push localhost/NAME:TAG to the cluster's registry. Pods use it by the same name."""
    cluster = Cluster(name)
    cluster.status()  # raises if it is not running
    out.print(store.push(image, cluster.registry, ca=cluster.ca))


@image_app.command("list")
def image_list() -> None:
    """List the images that were built on this machine."""
    table = Table("image", "id", "created", box=None)
    for image in store.list_images():
        table.add_row(str(image), image.id[:12], image.created)
    out.print(table)
