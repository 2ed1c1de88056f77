"""`kubeslurm operator`, `kubeslurm webhook` and `kubeslurm rbac`."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer()

# The processes read their flags themselves: Go's may have one dash only, which click would tear into letters.
RAW: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


# What each command needs is imported by the command: the rest of the program starts faster without it.
@app.command("operator", context_settings=RAW, add_help_option=False)
def operator(context: typer.Context) -> None:
    """Run the operator, which brings Slurm clusters into being and looks after them."""
    from kubeslurm.operator import launch  # noqa: PLC0415

    raise typer.Exit(launch.operator(context.args))


@app.command("webhook", context_settings=RAW, add_help_option=False)
def webhook(context: typer.Context) -> None:
    """Run the admission server, which refuses objects that could not work."""
    from kubeslurm.operator import launch  # noqa: PLC0415

    raise typer.Exit(launch.webhook(context.args))


@app.command("rbac")
def print_rbac(
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Print the rules of the operator's and the webhook's roles, as the chart includes them."""
    from kubeslurm.operator import rbac  # noqa: PLC0415

    if output is None:
        typer.echo(rbac.template(), nl=False)
    else:
        output.write_text(rbac.template())
