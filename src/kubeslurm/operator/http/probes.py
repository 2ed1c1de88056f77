"""The endpoints for the kubelet and Prometheus."""

from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

Waiting = Callable[[], Iterable[str]]
Admit = Callable[[str], Awaitable[int]]  # Authorization header -> 200, 401 or 403


def health(waiting: Waiting) -> Starlette:
    """`/healthz` answers while the loop runs; `/readyz` once nothing is waited for, and says what is."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        awaited = sorted(waiting())
        if awaited:
            return PlainTextResponse(f"waiting for: {', '.join(awaited)}\n", status_code=503)
        return PlainTextResponse("ok\n")

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


def metrics(admit: Admit | None = None, registry: CollectorRegistry = REGISTRY) -> Starlette:
    """`/metrics` in whichever text format the scraper prefers, for requests that `admit` accepts."""

    async def scrape(request: Request) -> Response:
        if admit is not None and (status := await admit(request.headers.get("authorization", ""))) != 200:
            return PlainTextResponse(
                "send a bearer token that may get /metrics: bind the ClusterRole ending in -metrics-reader\n",
                status_code=status,
            )
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), media_type=content_type)

    return Starlette(routes=[Route("/metrics", scrape)])
