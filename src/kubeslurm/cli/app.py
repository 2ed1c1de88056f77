"""Puts the commands together; each lives with the part it belongs to, and is imported only when it is called."""

import signal
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# The operator's pod has no use for the one-machine Kubernetes, and neither has anybody who waits for a prompt.
MODULES = {
    "up": "kubeslurm.cli.up.command",
    "down": "kubeslurm.cli.up.command",
    "local": "kubeslurm.local.commands",
    "crds": "kubeslurm.cli.crds",
    "operator": "kubeslurm.cli.operator",
    "webhook": "kubeslurm.cli.operator",
    "rbac": "kubeslurm.cli.operator",
}


class Commands(TyperGroup):
    """The commands by name; a module may hold several, or a whole group."""

    def list_commands(self, _ctx: Any) -> list[str]:  # typer has a click of its own and does not show its types
        return list(MODULES)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in MODULES:
            return None
        group = typer.main.get_group(import_module(MODULES[cmd_name]).app)
        command = group.commands.get(cmd_name, group)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="kubeslurm",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def kubeslurm() -> None:
    """Slurm clusters on Kubernetes."""


def main() -> None:
    """Entry point of the `kubeslurm` script."""
    # A polite stop unwinds like Ctrl-C, so that half-made things are cleaned up. The servers install their own.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
