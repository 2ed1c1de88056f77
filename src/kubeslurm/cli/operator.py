"""`kubeslurm operator`, `kubeslurm webhook` and `kubeslurm rbac`."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer()

# These processes parse their flags themselves: Go-style flags may have one dash, which click would split into letters.
RAW: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


# Imports are inside the commands, so that other commands start faster.
@app.command("operator", context_settings=RAW, add_help_option=False)
def operator(context: typer.Context) -> None:
    """Run the operator, which creates and manages Slurm clusters."""
    from kubeslurm.operator import launch  # noqa: PLC0415

    raise typer.Exit(launch.operator(context.args))


@app.command("webhook", context_settings=RAW, add_help_option=False)
def webhook(context: typer.Context) -> None:
    """Run the admission webhook, which rejects invalid objects."""
    from kubeslurm.operator import launch  # noqa: PLC0415

    raise typer.Exit(launch.webhook(context.args))


@app.command("rbac")
def print_rbac(
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Print the RBAC rules of the operator and the webhook, as a template of the chart."""
    from kubeslurm.operator import rbac  # noqa: PLC0415

    if output is None:
        typer.echo(rbac.template(), nl=False)
    else:
        output.write_text(rbac.template())
