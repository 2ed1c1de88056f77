"""The bodies of slurmrestd's answers, around the structs of models.py."""

from typing import Any, TypeVar

import msgspec

from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.rest.answers import Fault, decode
from kubeslurm.slurm.rest.models import Association, Job, Node, Number, Ping
from kubeslurm.slurm.rest.session import Reply

T = TypeVar("T")


class NodeBody(msgspec.Struct):
    nodes: tuple[Node, ...]


class Reservation(msgspec.Struct):
    name: str


class ReservationsBody(msgspec.Struct):
    reservations: tuple[Reservation, ...]


class NodesBody(msgspec.Struct):
    # The list and its time have no default: an answer without them must not read as a cluster without nodes.
    nodes: tuple[Node, ...]
    last_update: Number
    warnings: tuple[Fault, ...] = ()


class JobsBody(msgspec.Struct):
    jobs: tuple[Job, ...]


class JobStateRow(msgspec.Struct):
    job_id: str
    state: tuple[str, ...] = ()


class JobStatesBody(msgspec.Struct):
    jobs: tuple[JobStateRow, ...] = ()


class CancelFault(msgspec.Struct):
    code: int = 0
    string: str = ""


class CancelRow(msgspec.Struct):
    error: CancelFault = msgspec.field(default_factory=CancelFault)


class CancelBody(msgspec.Struct):
    status: tuple[CancelRow, ...] = ()


class PingBody(msgspec.Struct):
    pings: tuple[Ping, ...] = ()


class ConfMeta(msgspec.Struct):
    checksum: int = msgspec.field(name="HashValue", default=0)
    read_at: int = msgspec.field(name="BOOT_TIME", default=0)


class ConfBody(msgspec.Struct):
    slurm_conf: dict[str, Any]
    slurm_conf_meta: ConfMeta


class Statistics(msgspec.Struct):
    req_time: Number


class DiagBody(msgspec.Struct):
    statistics: Statistics


class Release(msgspec.Struct):
    release: str = ""


class Meta(msgspec.Struct):
    slurm: Release = msgspec.field(default_factory=Release)


class MetaBody(msgspec.Struct):
    meta: Meta = msgspec.field(default_factory=Meta)


class AssociationsBody(msgspec.Struct):
    associations: tuple[Association, ...]


def read(reply: Reply, body: type[T]) -> T:
    """The body of an answer; SlurmError when it has another form."""
    try:
        return decode(reply.body, body)
    except msgspec.DecodeError as error:
        raise SlurmError(f"slurmrestd answered {reply.path} in a form that is not understood: {error}") from error
