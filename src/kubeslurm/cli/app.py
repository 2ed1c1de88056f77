"""The `kubeslurm` command. The module of a subcommand is imported only when that subcommand runs."""

import signal
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# Late imports keep the start fast, and keep the one-machine Kubernetes out of the operator's process.
MODULES = {
    "up": "kubeslurm.cli.up.commands",
    "down": "kubeslurm.cli.up.commands",
    "local": "kubeslurm.local.commands",
    "crds": "kubeslurm.cli.crds",
    "operator": "kubeslurm.cli.operator",
    "webhook": "kubeslurm.cli.operator",
    "rbac": "kubeslurm.cli.operator",
}


class Commands(TyperGroup):
    """Finds subcommands by name; a module may define several, or a whole group."""

    def list_commands(self, _ctx: Any) -> list[str]:  # typer vendors click and does not export its types
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
    # SIGTERM raises KeyboardInterrupt like Ctrl-C, so that commands clean up. The servers install their own handlers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()
