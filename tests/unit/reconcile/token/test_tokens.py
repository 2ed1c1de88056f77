"""A Token from its first pass on: issued, renewed, replaced with its key, never over somebody else's Secret."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubeslurm.slurm import tokens
from tests.support.controlplane import JWT_KEY, KEY, ControlPlane

pytestmark = pytest.mark.looptime

TOKEN = KEY._replace(name="t")
OTHER_KEY = b"other-key" * 4


@pytest.fixture
async def world() -> AsyncIterator[ControlPlane]:
    made = ControlPlane()
    await made.start()
    await made.make_keys()
    yield made
    await made.stop()


async def make(world: ControlPlane, **spec: Any) -> None:
    base = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "ann", "lifetime": "1000s"}
    await world.make("Token", "t", "tokens", spec=base | spec)


def value(world: ControlPlane, name: str = "t-jwt-ann") -> str:
    found = world.find("secrets", name) or {}
    return base64.b64decode(found["data"]["SLURM_JWT"]).decode()


async def test_a_token_is_issued_owned_by_its_token_and_says_when(world: ControlPlane) -> None:
    await make(world)
    again = await world.token.reconcile(TOKEN)
    claims = tokens.read(JWT_KEY, value(world))
    assert (claims.sun, claims.lifetime) == ("ann", 1000)
    found = world.find("secrets", "t-jwt-ann") or {}
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Token"
    assert world.status("tokens", "t")["issuedAt"] == "1970-01-12T13:46:40Z"
    assert again is not None
    assert again.after == pytest.approx(800)


async def test_a_young_token_is_left_alone(world: ControlPlane) -> None:
    await make(world)
    await world.token.reconcile(TOKEN)
    await world.settle()
    before = world.writes
    await world.token.reconcile(TOKEN)
    assert world.writes == before


async def test_a_token_is_renewed_when_a_fifth_of_its_life_is_left(world: ControlPlane) -> None:
    await make(world)
    await world.token.reconcile(TOKEN)
    first = value(world)
    world.now += 801
    await world.settle()
    await world.token.reconcile(TOKEN)
    assert value(world) != first


async def test_a_new_key_brings_a_new_token_even_without_refresh(world: ControlPlane) -> None:
    for refresh in (True, False):
        await make(world, refresh=refresh)
        await world.token.reconcile(TOKEN)
        await world.settle()
        await world.make_keys(OTHER_KEY)
        await world.token.reconcile(TOKEN)
        assert tokens.read(OTHER_KEY, value(world)).sun == "ann"
        await world.make_keys()


async def test_an_expired_token_without_refresh_is_reported_and_kept(world: ControlPlane) -> None:
    await make(world, refresh=False)
    await world.token.reconcile(TOKEN)
    first = value(world)
    world.now += 5000
    await world.settle()
    await world.token.reconcile(TOKEN)
    assert value(world) == first
    assert world.condition("Ready", "tokens", "t")["reason"] == "TokenExpired"


async def test_somebody_elses_secret_is_never_overwritten(world: ControlPlane) -> None:
    await world.plain("Secret", "precious", "secrets", data={"password": "eA=="})
    await make(world, secretRef={"name": "precious", "key": "SLURM_JWT"})
    await world.token.reconcile(TOKEN)
    assert (world.find("secrets", "precious") or {})["data"] == {"password": "eA=="}
    assert world.condition("Degraded", "tokens", "t")["reason"] == "InvalidSpec"


async def test_a_missing_key_is_named(world: ControlPlane) -> None:
    await make(world, jwtKeyRef={"name": "nosuch", "key": "k"})
    await world.token.reconcile(TOKEN)
    assert "ns/nosuch" in world.condition("Degraded", "tokens", "t")["message"]


async def test_identity_travels_in_the_token(world: ControlPlane) -> None:
    await make(world, identity={"uid": 3003, "gid": 3003, "gids": [3003, 4000], "dir": "/home/ann"})
    await world.token.reconcile(TOKEN)
    payload = value(world).split(".")[1]
    assert b'"uid":3003' in base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
