"""`kubeslurm up` and `kubeslurm down`: the whole product, on this machine or on a cluster that exists."""

import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import releases
from kubeslurm.cli.up.product import FirstJob, Product, save_jobs
from kubeslurm.local.cluster.cluster import DEFAULT_NAME, Cluster
from kubeslurm.local.errors import LocalError, told
from kubeslurm.local.host.progress import Progress

app = typer.Typer()
out = Console(highlight=False, soft_wrap=True)

Name = Annotated[str, typer.Option("--name", help="Which cluster on this machine.")]
Context = Annotated[str | None, typer.Option(help="Use this context of your kubeconfig instead of this machine.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command()
def up(
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Nodes on this machine, unless the cluster runs already. Default: as the last time, or 3."
        ),
    ] = None,
    values: Annotated[Path | None, typer.Option(help="Values for the slurm chart.", exists=True)] = None,
    name: Name = DEFAULT_NAME,
    context: Context = None,
    registry: Annotated[
        str, typer.Option(help="With --context: where the images are, if not at ghcr.io/kubeslurm.")
    ] = "",
    yes: Yes = False,
) -> None:
    """Bring up Slurm: Kubernetes (unless --context names one), the operator, a small cluster, a first job."""
    began = time.monotonic()
    with told():
        extra = _values(values)
        if context is not None:
            _ask(f"Install Slurm and its operator on the cluster of context {context!r}?", yes)
        with Progress() as progress:
            product = Product.local(name, nodes, progress) if context is None else Product.remote(context, registry)
            changed = product.install(extra, progress) or product.started
            job = product.first_job(progress)
            seconds = time.monotonic() - began
            job = product.way_in(job, progress)
    _tell(job, changed, seconds, _kubectl(name, context))


@app.command()
def down(
    purge: Annotated[bool, typer.Option("--purge", help="Delete volumes and all other state too.")] = False,
    name: Name = DEFAULT_NAME,
    context: Context = None,
    yes: Yes = False,
) -> None:
    """Take Slurm away again. Volumes stay unless --purge is given."""
    with told():
        if context is None:
            cluster = Cluster(name)
            if cluster.running and not purge:
                save_jobs(cluster)
            stopped = cluster.down(purge=purge)
            out.print(f"The cluster {name!r} is down." if stopped else f"The cluster {name!r} was not running.")
            return
        _ask(f"Remove Slurm and its operator from the cluster of context {context!r}?", yes)
        Product.remote(context).uninstall(purge=purge)
    out.print(f"Slurm and its operator are gone from {context}.")


def _values(path: Path | None) -> Tree:
    try:
        found = yaml.safe_load(path.read_text()) if path else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LocalError(f"The values in {path} cannot be read: {error}.", "Correct the file.") from error
    if found is not None and not isinstance(found, dict):
        raise LocalError(f"The values in {path} are no map.", "Write them as the values.yaml of a Helm chart.")
    return found or {}


def _ask(question: str, yes: bool) -> None:
    if not yes and not typer.confirm(question):
        raise typer.Exit(1)


def _kubectl(name: str, context: str | None) -> str:
    if context is not None:
        return f"kubectl --context {shlex.quote(context)}"
    # As it was called, where a shell would not find it by its name: lines have to work when they are pasted.
    program = "kubeslurm" if shutil.which("kubeslurm") else shlex.quote(sys.argv[0])
    return f"{program} local kubectl" + ("" if name == DEFAULT_NAME else f" --name {name}")


def _tell(job: FirstJob, changed: bool, seconds: float, kubectl: str) -> None:
    state = f"Slurm is up after {seconds:.1f} s." if changed else "Everything was up already; nothing was changed."
    here = f"{kubectl} -n {releases.SLURM_NAMESPACE}"
    enter = f"{here} exec statefulset/{releases.SLURM}-controller -c slurmctld --"
    lines = [
        f"{state} `srun --nodes={job.workers} hostname` says:",
        job.output.rstrip(),
        "",
        "What to try next:",
        f"  {here} get slurm",
        f"  {here} scale nodeset/{releases.SLURM}-worker-{releases.WORKER} --replicas={job.workers + 1}",
        f"  {job.login or enter} sbatch --wrap hostname",
    ]
    if job.recorded:
        lines.append(f"  {job.login or enter} sacct --allusers --starttime=now-1week")
    if job.login:
        lines.append(f"  {job.login}")
    out.print("\n".join(lines), markup=False)
