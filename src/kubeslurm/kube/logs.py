"""Reads container logs, for failures that a daemon reports nowhere else."""

from kubeslurm.api.kinds import POD
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.transport.connection import Request

LINES = 200
FIRST_BYTES = 65536


async def recent(kube: Kube, pod: Key, container: str, *, seconds: int) -> str:
    """The lines of the last `seconds`; empty when there are none or the log cannot be read."""
    params = {"container": container, "sinceSeconds": str(seconds), "tailLines": str(LINES)}
    return await _read(kube, pod, params) or ""


async def beginning(kube: Kube, pod: Key, container: str) -> str | None:
    """The start of the log, for what is logged only once; None when it cannot be read."""
    return await _read(kube, pod, {"container": container, "limitBytes": str(FIRST_BYTES)})


async def first_and_last(kube: Kube, pod: Key, container: str) -> str | None:
    """The start and, where that is not all, the end of the log; None when it cannot be read."""
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
