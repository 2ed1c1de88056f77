"""What service accounts asked of an API server, by its own record."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubeslurm.local.cluster import Cluster


class User(msgspec.Struct, frozen=True):
    username: str


class Target(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""
    name: str = ""


class Answer(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class Asked(msgspec.Struct, frozen=True):
    """One line of the audit log."""

    verb: str
    user: User
    objectRef: Target = Target()
    responseStatus: Answer = Answer()

    @property
    def verbs(self) -> tuple[str, ...]:
        """A patch that made the object needed the right to create it as well."""
        return ("patch", "create") if self.verb == "patch" and self.responseStatus.code == 201 else (self.verb,)

    @property
    def forbidden(self) -> bool:
        """For want of a right: in a namespace that is being deleted, nobody may create anything."""
        answer = self.responseStatus
        return answer.code == 403 and "because it is being terminated" not in answer.message


def read(parts: Iterable[Path], *accounts: str) -> set[Asked]:
    """All requests of these service accounts; a watch is on record once it has ended."""
    decode = msgspec.json.Decoder(Asked).decode
    # What comes after the last end of a line is still being written.
    lines = (line for part in parts for line in part.read_bytes().split(b"\n")[:-1])
    return {each for each in map(decode, lines) if each.user.username in accounts}


def parts_of(cluster: Cluster) -> list[Path]:
    """The record of a cluster, with what was set aside when it grew too long."""
    log = cluster.log("audit")
    return list(log.parent.glob(f"{log.stem}*{log.suffix}"))


def asked_of(cluster: Cluster, namespace: str, account: str) -> set[Asked]:
    """What a service account has asked of a running cluster."""
    return read(parts_of(cluster), f"system:serviceaccount:{namespace}:{account}")
