import json
from base64 import urlsafe_b64decode

import pytest

from kubeslurm.slurm import tokens
from kubeslurm.slurm.clusters import OwnToken

KEY = b"0123456789abcdef0123456789abcdef"


def payload(token: str) -> dict[str, object]:
    part = token.split(".")[1]
    content: dict[str, object] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return content


def test_a_token_has_the_claims_that_slurm_and_its_users_expect() -> None:
    claims = payload(tokens.mint(KEY, "slurm", now=1000.7, lifetime=900))
    assert len(str(claims.pop("jti"))) == 36
    assert claims == {"iss": "slurm-operator", "iat": 1000, "nbf": 1000, "exp": 1900, "sun": "slurm"}


def test_an_identity_travels_in_the_token() -> None:
    carol = tokens.Identity(uid=3003, gid=3003, name="carol", dir="/home/carol", gids=(3003, 100))
    claims = payload(tokens.mint(KEY, "carol", now=0, lifetime=60, identity=carol))
    assert (claims["uid"], claims["gid"]) == (3003, 3003)
    assert claims["id"] == {"name": "carol", "dir": "/home/carol", "gids": [3003, 100]}


@pytest.mark.parametrize(("asked", "given"), [(-5, 0), (60, 60), (2**40, 2**31 - 2)])
def test_lifetimes_fit_into_what_slurm_can_hold(asked: int, given: int) -> None:
    assert tokens.clamp(asked) == given


def test_a_token_is_read_back_even_after_it_expired() -> None:
    claims = tokens.read(KEY, tokens.mint(KEY, "bob", now=1000, lifetime=100))
    assert (claims.sun, claims.lifetime, claims.renew_at()) == ("bob", 100, 1080)
    assert not claims.expired(1099)
    assert claims.expired(1100)


@pytest.mark.parametrize(
    "token", ["", "x.y.z", tokens.mint(b"another key of thirty-two bytes!", "bob", now=0, lifetime=9)]
)
def test_a_token_of_another_key_is_none_of_ours(token: str) -> None:
    with pytest.raises(tokens.BadToken):
        tokens.read(KEY, token)


def test_an_empty_key_is_said_clearly() -> None:
    with pytest.raises(tokens.BadToken, match="empty"):
        tokens.mint(b"", "slurm", now=0, lifetime=1)


def test_our_own_token_is_renewed_before_it_runs_out_and_when_the_key_changes() -> None:
    now = [1000.0]
    own = OwnToken(KEY, clock=lambda: now[0])
    first = own()
    now[0] += 719
    assert own() == first
    now[0] += 2
    second = own()
    assert second != first
    own.rotate(KEY)
    assert own() == second
    other = b"another key of thirty-two bytes!"
    own.rotate(other)
    assert tokens.read(other, own()).sun == "slurm"
