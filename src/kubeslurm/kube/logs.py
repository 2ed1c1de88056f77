"""What a container has said lately: for troubles that a daemon tells to nobody but its log."""

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.transport.connection import Request

LINES = 200
FIRST_BYTES = 65536


async def recent(kube: Kube, pod: Key, container: str, *, seconds: int) -> str:
    """The lines of the last `seconds`; empty when there are none or nobody can tell."""
    params = {"container": container, "sinceSeconds": str(seconds), "tailLines": str(LINES)}
    return await _read(kube, pod, params) or ""


async def beginning(kube: Kube, pod: Key, container: str) -> str | None:
    """What the container said first, for what is said only once; None when nobody can tell."""
    return await _read(kube, pod, {"container": container, "limitBytes": str(FIRST_BYTES)})


async def first_and_last(kube: Kube, pod: Key, container: str) -> str | None:
    """What the container said first and, where that is not all, last; None when nobody can tell."""
    first = await beginning(kube, pod, container)
    if first is None or len(first.encode()) < FIRST_BYTES:
        return first
    last = await _read(kube, pod, {"container": container, "tailLines": str(LINES)})
    return None if last is None else f"{first}\n{last}"


async def _read(kube: Kube, pod: Key, params: dict[str, str]) -> str | None:
    path = POD.path(pod.namespace, pod.name, "log")
    try:
        raw = await kube.connection.read(Request(verb="log", kind=POD.kind, path=path, params=params), timeout=5)
    except ApiError:
        return None
    return raw.decode(errors="replace")
