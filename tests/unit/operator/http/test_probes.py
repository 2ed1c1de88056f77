"""What the kubelet and Prometheus see."""

import httpx2
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette

from kubeslurm.operator.http import probes


async def get(app: Starlette, path: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://operator") as client:
        return await client.get(path, headers=headers)


async def test_health_answers_whatever_is_waited_for() -> None:
    app = probes.health(lambda: ["pods"])
    assert (await get(app, "/healthz")).status_code == 200


async def test_readiness_names_what_is_waited_for() -> None:
    awaited = ["pods", "nodes"]
    app = probes.health(lambda: awaited)
    answer = await get(app, "/readyz")
    assert (answer.status_code, answer.text) == (503, "waiting for: nodes, pods\n")
    awaited.clear()
    assert (await get(app, "/readyz")).status_code == 200


async def test_metrics_come_in_the_format_the_scraper_asks_for() -> None:
    registry = CollectorRegistry()
    Counter("kubeslurm_tries", "Tries.", registry=registry).inc()
    app = probes.metrics(registry=registry)
    plain = await get(app, "/metrics")
    assert "kubeslurm_tries_total 1.0" in plain.text
    assert plain.headers["content-type"].startswith("text/plain")
    modern = await get(app, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert modern.headers["content-type"].startswith("application/openmetrics-text")


async def test_guarded_metrics_turn_strangers_away() -> None:
    async def admit(authorization: str) -> int:
        return {"": 401, "Bearer known": 200}.get(authorization, 403)

    app = probes.metrics(admit)
    assert (await get(app, "/metrics")).status_code == 401
    assert (await get(app, "/metrics", authorization="Bearer other")).status_code == 403
    assert (await get(app, "/metrics", authorization="Bearer known")).status_code == 200
