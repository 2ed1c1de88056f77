"""What service accounts asked of an API server, by its own record."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from kubeslurm.local.cluster.cluster import Cluster

POD = "authentication.kubernetes.io/pod-uid"


class User(msgspec.Struct, frozen=True):
    username: str
    extra: dict[str, list[str]] = {}


class Target(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""
    name: str = ""


class Answer(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class Line(msgspec.Struct, frozen=True):
    """One line of the audit log."""

    verb: str
    user: User
    requestReceivedTimestamp: datetime
    objectRef: Target = Target()
    responseStatus: Answer = Answer()

    @property
    def pod(self) -> str:
        return "".join(self.user.extra.get(POD, ()))


class Asked(msgspec.Struct, frozen=True):
    """What was asked by whom, however often, and the answer."""

    verb: str
    username: str
    objectRef: Target
    responseStatus: Answer

    @property
    def verbs(self) -> tuple[str, ...]:
        """A patch that made the object needed the right to create it as well."""
        return ("patch", "create") if self.verb == "patch" and self.responseStatus.code == 201 else (self.verb,)

    @property
    def forbidden(self) -> bool:
        """For want of a right: in a namespace that is being deleted, nobody may create anything."""
        answer = self.responseStatus
        return answer.code == 403 and "because it is being terminated" not in answer.message


def lines(parts: Iterable[Path]) -> Iterator[bytes]:
    """All whole lines of a record: what comes after the last end of a line is still being written."""
    return (line for part in parts for line in part.read_bytes().split(b"\n")[:-1])


def read(parts: Iterable[Path], *accounts: str) -> set[Asked]:
    """All requests of these service accounts; a watch is on record once it has ended.

    When the operator is uninstalled, its pods outlive their rights: what a pod was refused after the last time that it
    was granted anything says nothing about the rights that it needs.
    """
    decode = msgspec.json.Decoder(Line).decode
    every = map(decode, lines(parts))
    theirs = sorted((each for each in every if each.user.username in accounts), key=_moment)
    granted = {line.pod: _moment(line) for line in theirs if line.responseStatus.code < 400}
    return {
        Asked(line.verb, line.user.username, line.objectRef, line.responseStatus)
        for line in theirs
        if line.responseStatus.code != 403 or _moment(line) <= granted.get(line.pod, _moment(line))
    }


def _moment(line: Line) -> datetime:
    return line.requestReceivedTimestamp


def parts_of(cluster: Cluster) -> list[Path]:
    """The record of a cluster, with what was set aside when it grew too long."""
    log = cluster.log("audit")
    return list(log.parent.glob(f"{log.stem}*{log.suffix}"))


def asked_of(cluster: Cluster, namespace: str, account: str) -> set[Asked]:
    """What a service account has asked of a running cluster."""
    return read(parts_of(cluster), f"system:serviceaccount:{namespace}:{account}")
