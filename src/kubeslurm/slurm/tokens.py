"""JSON web tokens for Slurm's auth/jwt, signed with the cluster's HS256 key."""

import uuid
from typing import Any

import jwt
import msgspec
from jwt.types import Options

ISSUER = "slurm-operator"
# Slurm keeps expiry in 32 bits.
LONGEST = 2**31 - 2
OWN_USER = "slurm"
OWN_LIFETIME = 900
# The part of a token's lifetime after which it is renewed.
RENEW_AT = 0.8

# Expired tokens are read as well: the caller decides what to do with them.
_ANY_TIME: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user's ids, for clusters with use_jwt_client_ids, where no machine has to know the user."""

    uid: int
    gid: int
    name: str
    gecos: str = ""
    dir: str = ""
    shell: str = ""
    gids: tuple[int, ...] = ()


class Claims(msgspec.Struct, frozen=True):
    """The claims of a token that the operator issued."""

    sun: str
    iat: int
    exp: int

    @property
    def lifetime(self) -> int:
        return self.exp - self.iat

    def renew_at(self) -> float:
        """When the token should be replaced."""
        return self.iat + self.lifetime * RENEW_AT

    def expired(self, now: float) -> bool:
        return now >= self.exp


class BadToken(ValueError):  # noqa: N818 (a cause, as in errors.py)
    """Not a token, or one signed with another key."""


def clamp(lifetime: float) -> int:
    """The nearest lifetime that Slurm can represent."""
    return int(min(max(lifetime, 0), LONGEST))


def mint(key: bytes, user: str, *, now: float, lifetime: float, identity: Identity | None = None) -> str:
    """A signed token for `user`, valid from `now` on."""
    start = int(now)
    claims: dict[str, Any] = {
        "jti": str(uuid.uuid4()),
        "iss": ISSUER,
        "iat": start,
        "nbf": start,
        "exp": start + clamp(lifetime),
        "sun": user,
    }
    if identity is not None:
        who = msgspec.to_builtins(identity)
        claims |= {"uid": who.pop("uid"), "gid": who.pop("gid"), "id": who}
    return jwt.encode(claims, _usable(key), algorithm="HS256")


def read(key: bytes, token: str) -> Claims:
    """The claims of a token that was signed with `key`, expired or not; raises BadToken for any other."""
    try:
        claims = jwt.decode(token, _usable(key), algorithms=["HS256"], options=_ANY_TIME)
        return msgspec.convert(claims, Claims)
    except (jwt.PyJWTError, msgspec.ValidationError) as error:
        raise BadToken(f"the token was not signed with this key or is damaged: {error}") from error


def _usable(key: bytes) -> bytes:
    if not key:
        raise BadToken("the JWT key is empty; put at least 32 random bytes into its Secret")
    return key
