"""The admission server: one path per kind, as in the webhook configurations."""

from typing import Any

import msgspec
import structlog
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kubeslurm.api.kinds import SLURM_KINDS, Kind
from kubeslurm.api.resource import SlurmResource
from kubeslurm.webhooks.lookup import Reader, facts_for
from kubeslurm.webhooks.review import ALLOWED, Decision, Review, answer, decode
from kubeslurm.webhooks.rules import validate

BINDING_PATH = "/mutate--v1-binding"
CHECKED = frozenset({"CREATE", "UPDATE"})

ADMISSIONS = Counter("kubeslurm_admission_total", "Admission requests by kind and verdict.", ["kind", "verdict"])
log = structlog.get_logger("kubeslurm.webhooks")


def path_of(kind: Kind[Any]) -> str:
    """The path at which objects of this kind are validated."""
    return f"/validate-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"


def admission(reader: Reader) -> Starlette:
    """The application that answers the admission requests of the API server."""
    routes = [Route(path_of(kind), _Validate(kind, reader), methods=["POST"]) for kind in SLURM_KINDS]
    return Starlette(routes=[*routes, Route(BINDING_PATH, _allow, methods=["POST"])])


class _Validate:
    """Validates objects of one kind."""

    def __init__(self, kind: Kind[Any], reader: Reader) -> None:
        self._kind = kind
        self._reader = reader
        self._decoder = msgspec.json.Decoder(kind.type)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            review = decode(await request.body())
        except (msgspec.MsgspecError, ValueError) as error:
            return PlainTextResponse(f"not an admission review: {error}\n", status_code=400)
        decision = await self._decide(review)
        outcome = "refused" if decision.errors else "allowed"
        ADMISSIONS.labels(self._kind.kind, outcome).inc()
        if decision.errors:
            key = f"{review.request.namespace}/{review.request.name}"
            log.info("refused", kind=self._kind.kind, key=key, errors=decision.errors)
        return _json(review, decision)

    async def _decide(self, review: Review) -> Decision:
        if review.request.operation not in CHECKED:
            return ALLOWED
        try:
            new = self._object(review.request.object)
            old = self._object(review.request.old_object)
        except msgspec.MsgspecError as error:
            return Decision(errors=(f"the {self._kind.kind} cannot be decoded: {error}",))
        if new is None:
            return ALLOWED
        return validate(new, old, await facts_for(new, self._reader))

    def _object(self, raw: msgspec.Raw) -> SlurmResource | None:
        text = bytes(raw)
        return None if text in (b"", b"null") else self._decoder.decode(text)


async def _allow(request: Request) -> Response:
    """Allows every Binding, so that an installed webhook configuration for them holds up no pod."""
    try:
        return _json(decode(await request.body()), ALLOWED)
    except (msgspec.MsgspecError, ValueError) as error:
        return PlainTextResponse(f"not an admission review: {error}\n", status_code=400)


def _json(review: Review, decision: Decision) -> Response:
    return Response(msgspec.json.encode(answer(review, decision)), media_type="application/json")
