"""The facts about a Controller that a pass decides and reports by.

A configuration has four stages: desired, accepted (it passed the trial), delivered (it is in the ConfigMap), running
(slurmctld says so).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from kubeslurm.api import names
from kubeslurm.api.views import Node, Pod, StatefulSet
from kubeslurm.decide.config.kept_lines import KeptLine
from kubeslurm.decide.config.running import Running
from kubeslurm.decide.keys import KeyChange
from kubeslurm.decide.missing import Missing, Undecoded
from kubeslurm.slurm.conf import Problem


class Configuration(msgspec.Struct, frozen=True):
    """The files of /etc/slurm and their digest."""

    digest: str
    files: Mapping[str, str]

    @property
    def slurm_conf(self) -> str:
        return self.files.get(names.SLURM_CONF, "")


class Trial(msgspec.Struct, frozen=True):
    """What came of a slurmctld that was started only to try a configuration."""

    outcome: Literal["not started", "running", "passed", "failed", "inconclusive"]
    message: str = ""
    age: float = 0.0  # seconds since the outcome was first seen


class Reading(msgspec.Struct, frozen=True):
    """What Slurm says about the configuration it runs with."""

    running: Running | None  # None: this release of Slurm does not say
    responding: bool = True  # slurmctld answers
    late_workers: tuple[str, ...] = ()  # they have not restarted since slurmctld read its files


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far this process has brought one configuration into one slurmctld pod; times are seconds ago."""

    digest: str = ""
    since_refresh: float | None = None  # of the files in the pod
    since_reconfigure: float | None = None
    since_read: float | None = None  # slurmctld was first seen to have read the files
    attempts: int = 0
    before: Running | None = None  # what slurmctld said before the last reconfigure
    reading: Reading | None = None  # None: Slurm was not asked, or did not answer


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when a pass begins."""

    now: datetime
    external: bool = False
    missing: tuple[Missing, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()  # objects of this cluster that cannot be decoded

    desired: Configuration | None = None  # None: incomplete, unreadable, with backups, or being deleted
    refused: tuple[Problem, ...] = ()  # settings in it that belong to the operator
    kept: tuple[KeptLine, ...] = ()  # lines of the desired configuration that only those who still use them need
    delivered: str = ""  # digest; only accepted configurations are delivered
    accepted: Configuration | None = None  # the delivered one as it was accepted; None: its files are not known
    edited: bool = False  # somebody has changed the files in the ConfigMap
    running: str = ""  # digest that slurmctld was last seen to run with, in whichever pod
    trial: Trial | None = None  # of the desired configuration
    progress: Progress = Progress()

    pod: Pod | None = None  # of slurmctld
    node: Node | None = None  # of that pod
    node_missing_for: float | None = None  # seconds since the API server first said that there is no such node
    statefulset: StatefulSet | None = None
    backups: int = 0  # of slurmctld, as another operator has started them: it is left alone with them
    key_hashes: Mapping[str, str] = msgspec.field(default_factory=dict)  # annotation -> hash
    waiting_key: KeyChange | None = None  # a changed slurm.key that has to wait
    accounting_awaited: str = ""  # the Accounting that is not ready yet

    reachable: bool = False  # Slurm answers
    version: str = ""
    nodes: int = 0
    nodesets: int = 0
    restapis: int = 0
