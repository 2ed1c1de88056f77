"""What users are told when something cannot be done: one clear sentence about what is wrong, one about what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import typer

FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalError(Exception):
    """Something that the user can mend."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())


@contextmanager
def told() -> Iterator[None]:
    """The door of every command: errors that are meant for the user end it with one line and without a traceback."""
    try:
        yield
    except LocalError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted. Run the same command again: it goes on from here.", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        where = f", {error.filename} cannot be written" if error.filename else ""
        remedy = "Free some space, or set XDG_CACHE_HOME and XDG_STATE_HOME to directories on a larger disk."
        typer.echo(f"Error: The disk is full{where}. {remedy}", err=True)
        raise typer.Exit(1) from None
