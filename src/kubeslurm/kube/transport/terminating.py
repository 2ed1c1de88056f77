"""Namespaces that are being deleted: the server refuses every new object there, so it is not asked each time."""

from collections.abc import Callable

from kubeslurm.kube.errors import TERMINATING_PAUSE, Terminating
from kubeslurm.kube.transport.wire import Request


class Closing:
    """Remembers for a while which namespaces refused: nothing is created or applied there, known or new.

    Whether an applied object is there already is not known here. Patches, statuses and deletions always pass.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def admit(self, request: Request) -> None:
        """Raises Terminating in the server's stead."""
        namespace = _brings_new(request)
        until = self._until.get(namespace)
        if until is None:
            return
        left = until - self._clock()
        if left <= 0:
            del self._until[namespace]
            return
        raise Terminating(403, "Forbidden", f"the namespace {namespace} is being deleted", after=left)

    def note(self, request: Request) -> None:
        """The server has just refused this one."""
        if namespace := _brings_new(request):
            self._until[namespace] = self._clock() + TERMINATING_PAUSE


def _brings_new(request: Request) -> str:
    """The namespace in which the request may make an object; empty if it cannot."""
    _, _, rest = request.path.partition("/namespaces/")
    namespace, *below = rest.split("/")
    makes = len(below) == 1 if request.verb == "create" else len(below) == 2 and request.verb == "apply"
    return namespace if makes else ""
