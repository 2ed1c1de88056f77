"""Starts a process from its command line; imports nothing that only the interactive commands need."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from kubeslurm.operator import logs, process
from kubeslurm.operator.settings.flags import FlagError
from kubeslurm.operator.settings.load import ENV_PREFIX, S, load
from kubeslurm.operator.settings.model import Common, LeaveSettings, SettingsError, WebhookSettings

HELP = frozenset({"-h", "-help", "--help"})


def operator(argv: Sequence[str]) -> int:
    """Runs the operator; returns its exit status."""
    from kubeslurm.operator.controllers import SETTINGS  # noqa: PLC0415  the webhook needs none of it
    from kubeslurm.operator.wiring import Operator  # noqa: PLC0415

    return _start(SETTINGS, argv, lambda settings, stop: Operator(settings).run(stop))


def webhook(argv: Sequence[str]) -> int:
    """Runs the admission server; returns its exit status."""
    from kubeslurm.operator.admission import Admission  # noqa: PLC0415  the operator needs none of it

    return _start(WebhookSettings, argv, lambda settings, stop: Admission(settings).run(stop))


def leave(argv: Sequence[str]) -> int:
    """Prepares the removal of the operator; returns its exit status."""
    from kubeslurm.operator.leave import leave as work  # noqa: PLC0415  only the uninstall needs it

    return _start(LeaveSettings, argv, work)


def usage(kind: type[Common]) -> str:
    """All flags with their defaults."""
    flags = (
        f"  --{field.name.replace('_', '-'):<28} {_shown(field.default)}" for field in msgspec.structs.fields(kind)
    )
    return "\n".join(
        [
            f"Flags, each also as {ENV_PREFIX}<NAME> in the environment or in a YAML file given with --config:",
            *flags,
            "  --zap-log-level, --zap-encoder and --zap-devel are understood, other zap flags ignored.",
        ]
    )


def _start(kind: type[S], argv: Sequence[str], work: Callable[[S, asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    if HELP.intersection(argv):
        print(usage(kind))  # noqa: T201
        return 0
    try:
        settings, warnings = load(kind, argv, os.environ)
    except (SettingsError, FlagError) as error:
        process.print_error(f"Error: {error}")
        return 2
    logs.configure(settings.log_level, settings.log_format)
    for warning in warnings:
        process.log.warning(warning)

    async def main(stop: asyncio.Event) -> None:
        await work(settings, stop)

    return process.run(main)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
