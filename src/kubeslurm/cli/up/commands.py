"""`kubeslurm up` and `kubeslurm down`: install Slurm on this machine or on an existing cluster, and remove it."""

import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import login, releases
from kubeslurm.cli.up.first_job import FirstJob
from kubeslurm.cli.up.installation import Installation, stop_slurmctld
from kubeslurm.local.cluster.cluster import DEFAULT_NAME, Cluster
from kubeslurm.local.errors import LocalError, exit_on_error
from kubeslurm.local.host import cache, disk, lock
from kubeslurm.local.host.progress import Progress

app = typer.Typer()
out = Console(highlight=False, soft_wrap=True)

Name = Annotated[str, typer.Option("--name", help="Name of the cluster on this machine.")]
Context = Annotated[
    str | None, typer.Option(help="Use the cluster of this kubeconfig context instead of this machine.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@app.command()
def up(
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of nodes on this machine, if the cluster does not run yet. Default: as last time, or 3."
        ),
    ] = None,
    values: Annotated[Path | None, typer.Option(help="Values file for the slurm chart.", exists=True)] = None,
    name: Name = DEFAULT_NAME,
    context: Context = None,
    registry: Annotated[
        str, typer.Option(help="With --context: registry of the images. Default: ghcr.io/kubeslurm.")
    ] = "",
    yes: Yes = False,
) -> None:
    """Start Kubernetes (unless --context is given), install the operator and a small Slurm cluster, run a first job."""
    start = time.monotonic()
    with exit_on_error():
        extra = _read_values(values)
        if context is not None:
            _confirm(f"Install Slurm and its operator on the cluster of the context {context!r}?", yes)
        cluster = Cluster(name)
        with _alone(cluster, context), Progress() as progress:
            if context is None:
                installation = Installation.local(cluster, nodes, progress)
            else:
                installation = Installation.remote(context, registry)
            changed = installation.install(extra, progress)
            job = installation.run_first_job(progress)
            seconds = time.monotonic() - start
            job = installation.wait_for_login(job, progress)
    _print_result(job, changed, seconds, _kubectl(name, context))


@app.command()
def down(
    purge: Annotated[bool, typer.Option("--purge", help="Delete volumes and all other state, too.")] = False,
    name: Name = DEFAULT_NAME,
    context: Context = None,
    yes: Yes = False,
) -> None:
    """Stop or remove Slurm. Volumes are kept unless --purge is given."""
    with exit_on_error():
        if context is None:
            cluster = Cluster(name)
            stopped = cluster.down(purge=purge, before=partial(stop_slurmctld, cluster))
            out.print(f"The cluster {name!r} is down." if stopped else f"The cluster {name!r} was not running.")
            return
        _confirm(f"Remove Slurm and its operator from the cluster of the context {context!r}?", yes)
        with _alone(Cluster(name), context):
            Installation.remote(context).uninstall(purge=purge)
    out.print(f"Slurm and its operator are removed from {context}.")


@contextmanager
def _alone(cluster: Cluster, context: str | None) -> Iterator[None]:
    """One command at a time works on an installation. A full disk is named whatever failed because of it."""
    if context is not None:
        with lock.exclusive(login.directory(context), f"the cluster of the context {context!r}"):
            yield
    else:
        with cluster.home.locked(), disk.named_as_cause(cluster.home.path, cache.directory()):
            yield


def _read_values(path: Path | None) -> Tree:
    try:
        found = yaml.safe_load(path.read_text()) if path else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LocalError(f"The values in {path} cannot be read: {error}.", "Correct the file.") from error
    if found is not None and not isinstance(found, dict):
        raise LocalError(f"The values in {path} are not a map.", "Write them like the values.yaml of a Helm chart.")
    return found or {}


def _confirm(question: str, yes: bool) -> None:
    if not yes and not typer.confirm(question):
        raise typer.Exit(1)


def _kubectl(name: str, context: str | None) -> str:
    if context is not None:
        return f"kubectl --context {shlex.quote(context)}"
    # The printed lines have to work when they are pasted: with the path of the program if it is not on the PATH.
    program = "kubeslurm" if shutil.which("kubeslurm") else shlex.quote(sys.argv[0])
    return f"{program} local kubectl" + ("" if name == DEFAULT_NAME else f" --name {name}")


def _print_result(job: FirstJob, changed: bool, seconds: float, kubectl: str) -> None:
    state = f"Slurm is up after {seconds:.1f} s." if changed else "Everything was up to date; nothing was changed."
    result = f"Output of `srun --nodes={job.workers} hostname`:\n{job.output.rstrip()}"
    in_namespace = f"{kubectl} -n {releases.SLURM_NAMESPACE}"
    in_slurmctld = f"{in_namespace} exec statefulset/{releases.SLURM}-controller -c slurmctld --"
    lines = [
        f"{state} {f'{job.skipped}, so no first job was run.' if job.skipped else result}",
        "",
        "What to try next:",
        f"  {in_namespace} get slurm",
        f"  {in_namespace} scale nodeset/{releases.SLURM}-worker-{releases.WORKER} --replicas={job.workers + 1}",
        f"  {job.login or in_slurmctld} sbatch --wrap hostname",
    ]
    if job.accounting:
        lines.append(f"  {job.login or in_slurmctld} sacct --allusers --starttime=now-1week")
    if job.login:
        lines.append(f"  {job.login}")
    out.print("\n".join(lines), markup=False)
