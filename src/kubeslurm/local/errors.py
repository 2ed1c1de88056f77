"""Errors for users: one sentence about what is wrong, and one about what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import typer

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalError(Exception):
    """An error that the user can fix, with a remedy."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the command with one line and no traceback, for errors that the user can fix."""
    try:
        yield
    except LocalError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again to continue.", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        file = f", {error.filename} cannot be written" if error.filename else ""
        remedy = "Free some space, or set XDG_CACHE_HOME and XDG_STATE_HOME to directories on a larger disk."
        typer.echo(f"Error: The disk is full{file}. {remedy}", err=True)
        raise typer.Exit(1) from None
