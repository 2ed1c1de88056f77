"""When a Token has to be issued anew."""

from enum import Enum

import msgspec

from kubeslurm.slurm.tokens import RENEW_AT, Claims


class Issue(Enum):
    """What to do about a token."""

    KEEP = "keep"
    NEW = "new"


class Facts(msgspec.Struct, frozen=True):
    """What the Secret of a Token holds: nothing, a token of the present key, or something signed with another key."""

    exists: bool
    claims: Claims | None  # None: no token in it, or one that the present key does not verify
    user: str
    lifetime: int
    refresh: bool


def decide(facts: Facts, now: float) -> tuple[Issue, float | None]:
    """Whether to issue one now, and in how many seconds to look again.

    A token that the present key does not verify is worthless, whoever asked not to refresh it: it is replaced at once.
    """
    claims = facts.claims
    if claims is None or claims.sun != facts.user:
        return Issue.NEW, _next(facts, now, now)
    if not facts.refresh:
        return Issue.KEEP, max(claims.exp - now, 0.0) + 1 if claims.exp > now else None
    if now >= claims.renew_at() or claims.lifetime != facts.lifetime:
        return Issue.NEW, _next(facts, now, now)
    return Issue.KEEP, _next(facts, claims.iat, now)


def _next(facts: Facts, issued: float, now: float) -> float | None:
    if not facts.refresh:
        return facts.lifetime + 1.0
    return max(issued + RENEW_AT * facts.lifetime - now, 1.0)
