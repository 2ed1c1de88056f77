"""Whether changes may reach slurmdbd now, by what its log says: a conversion of the database must not be cut short."""

import re
from datetime import datetime

import msgspec

from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.views import Pod, StatefulSet
from kubeslurm.decide.missing import Missing

STARTED = re.compile(r"slurmdbd version (\S+) started")
ACCESS_DENIED = "Access denied for user"
# Client errors of MySQL: no connection, unknown host, connection lost.
NOT_REACHABLE = (
    "failed: 2002",
    "failed: 2003",
    "failed: 2005",
    "error: 2006",
    "error: 2013",
    "must be up when starting",
)
_CONNECTED = "MySQL server version is"
# Seen when 26.05 took over a database of 24.11: each table is brought up to date before slurmdbd listens.
_CONVERTS = re.compile(r"onverting|(adding|dropping|changing) \S*\s?(column|key) ", re.IGNORECASE)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an Accounting when a pass begins."""

    now: datetime
    missing: tuple[Missing, ...] = ()
    password: str | None = ""  # as slurmdbd.conf must have it; None: the file cannot carry it
    pod: Pod | None = None
    statefulset: StatefulSet | None = None
    recent_log: str = ""  # of the last seconds
    startup_log: str | None = ""  # empty once slurmdbd has been ready; None: it cannot be read
    wrong_settings: tuple[str, ...] = ()  # of the database server, as slurmdbd said at its start
    clusters_with_nodesets: tuple[str, ...] = ()

    @property
    def is_converting(self) -> bool:
        return self.startup_log is not None and is_converting(self.startup_log)

    @property
    def is_busy(self) -> bool:
        return is_busy(self.startup_log)


def can_apply(accounting: Accounting, facts: Facts) -> bool:
    """Whether a slurmdbd of ours is desired, and everything is there to configure it."""
    spec = accounting.spec
    complete = spec.storageConfig is not None and not facts.missing and facts.password is not None
    return complete and not (accounting.deleting or spec.external)


def is_converting(startup_log: str) -> bool:
    """Whether slurmdbd converts the database to its release; the first lines of that may be hours old."""
    latest = _since_error(startup_log)
    return bool(_CONVERTS.search(latest)) and not STARTED.search(latest)


def is_busy(startup_log: str | None) -> bool:
    """Whether slurmdbd works on its tables, or nobody can tell: it does so before it logs a conversion."""
    if startup_log is None or is_converting(startup_log):
        return True
    latest = _since_error(startup_log)
    return _CONNECTED in latest and not STARTED.search(latest)


def _since_error(startup_log: str) -> str:
    """The lines since the last error of the database.

    When that happens at the end of a conversion, slurmdbd waits for ever and logs no more: only a restart helps.
    """
    lines = startup_log.splitlines()
    signs = (ACCESS_DENIED, *NOT_REACHABLE)
    last = max((number for number, line in enumerate(lines) if any(sign in line for sign in signs)), default=-1)
    return "\n".join(lines[last + 1 :])
