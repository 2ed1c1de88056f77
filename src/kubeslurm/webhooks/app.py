"""The admission server: one path per kind, as the webhook configurations name them."""

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
from kubeslurm.webhooks.review import ALLOWED, Review, Verdict, answer, decode
from kubeslurm.webhooks.rules import judge

BINDING_PATH = "/mutate--v1-binding"
CHECKED = frozenset({"CREATE", "UPDATE"})

VERDICTS = Counter("kubeslurm_admission_total", "Admission requests by kind and verdict.", ["kind", "verdict"])
log = structlog.get_logger("kubeslurm.webhooks")


def path_of(kind: Kind[Any]) -> str:
    """Where objects of this kind are validated."""
    return f"/validate-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"


def admission(reader: Reader) -> Starlette:
    """The application that answers the API server."""
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
        verdict = await self._judge(review)
        outcome = "refused" if verdict.errors else "allowed"
        VERDICTS.labels(self._kind.kind, outcome).inc()
        if verdict.errors:
            asked = review.request
            log.info("refused", kind=self._kind.kind, key=f"{asked.namespace}/{asked.name}", errors=verdict.errors)
        return _json(review, verdict)

    async def _judge(self, review: Review) -> Verdict:
        if review.request.operation not in CHECKED:
            return ALLOWED
        try:
            new = self._object(review.request.object)
            old = self._object(review.request.old_object)
        except msgspec.MsgspecError as error:
            return Verdict(errors=(f"the {self._kind.kind} cannot be read: {error}",))
        if new is None:
            return ALLOWED
        return judge(new, old, await facts_for(new, self._reader))

    def _object(self, raw: msgspec.Raw) -> SlurmResource | None:
        text = bytes(raw)
        return None if text in (b"", b"null") else self._decoder.decode(text)


async def _allow(request: Request) -> Response:
    """Bindings pass unchanged, so that an installed configuration for them holds up no pod."""
    try:
        return _json(decode(await request.body()), ALLOWED)
    except (msgspec.MsgspecError, ValueError) as error:
        return PlainTextResponse(f"not an admission review: {error}\n", status_code=400)


def _json(review: Review, verdict: Verdict) -> Response:
    return Response(msgspec.json.encode(answer(review, verdict)), media_type="application/json")
