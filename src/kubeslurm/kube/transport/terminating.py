"""Namespaces that are being deleted: the API server refuses every new object there, so few requests are sent."""

from collections.abc import Callable

from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.kube.errors import TERMINATING_PAUSE, Terminating
from kubeslurm.kube.transport.http import Request


class TerminatingNamespaces:
    """A cool-down per namespace that is being deleted: for its time nothing is created or applied there.

    Applies of objects that exist already are held back as well, since that is not known here. Patches, status writes
    and deletions always pass.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._cooldown: Cooldown[str] = Cooldown(clock)

    def check(self, request: Request) -> None:
        """Raises Terminating, without a request, while the namespace cools down."""
        namespace = _namespace_of_new_object(request)
        if remaining := self._cooldown.remaining(namespace):
            message = f"the namespace {namespace} is being deleted"
            raise Terminating(403, "Forbidden", message, after=remaining)

    def add(self, request: Request) -> None:
        """The API server has refused this request with Terminating."""
        if namespace := _namespace_of_new_object(request):
            self._cooldown.start(namespace, TERMINATING_PAUSE)


def _namespace_of_new_object(request: Request) -> str:
    """The namespace in which the request may create an object; empty if it cannot."""
    _, _, rest = request.path.partition("/namespaces/")
    namespace, *below = rest.split("/")
    creates = len(below) == 1 if request.verb == "create" else len(below) == 2 and request.verb == "apply"
    return namespace if creates else ""
