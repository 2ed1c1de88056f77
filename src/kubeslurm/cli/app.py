"""Puts the commands together; each lives with the part it belongs to."""

import signal

import typer

from kubeslurm.cli.crds import print_crds
from kubeslurm.cli.operator import app as operator
from kubeslurm.cli.up import down, up
from kubeslurm.local.commands import app as local

app = typer.Typer(
    name="kubeslurm",
    help="Slurm clusters on Kubernetes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(up)
app.command()(down)
app.add_typer(local, name="local")
app.command(name="crds")(print_crds)
app.add_typer(operator)


def main() -> None:
    """Entry point of the `kubeslurm` script."""
    # A polite stop unwinds like Ctrl-C, so that half-made things are cleaned up. The servers install their own.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
