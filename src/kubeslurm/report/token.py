"""The status of a Token: for whom, since when, until when."""

from datetime import UTC, datetime

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.token import Token
from kubeslurm.decide.missing import Missing
from kubeslurm.report.conditions import Finding, conditions, degraded, summarize
from kubeslurm.report.missing import not_found
from kubeslurm.report.reasons import Reason
from kubeslurm.report.refusal import Rejection, rejected
from kubeslurm.slurm.tokens import Claims


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass has found and done."""

    now: datetime
    claims: Claims | None = None  # of the token in the Secret
    missing: tuple[Missing, ...] = ()
    foreign_secret: bool = False  # the Secret belongs to something else
    rejected: Rejection | None = None


def status(token: Token, outcome: Outcome) -> Tree:
    """The whole status."""
    claims = outcome.claims
    failure = _failure(token, outcome)
    summary = summarize(
        failure=failure,
        progress=None,
        ready=claims is not None and failure is None,
        message=f"Secret {token.secret_name} holds a token of user {token.spec.user}",
    )
    times = {"issuedAt": _time(claims.iat), "expiresAt": _time(claims.exp)} if claims else {}
    return {
        "observedGeneration": token.metadata.generation,
        "secretName": token.secret_name,
        **times,
        "conditions": conditions(
            token.status.conditions, summary, generation=token.metadata.generation, now=outcome.now
        ),
    }


def _failure(token: Token, outcome: Outcome) -> Finding | None:
    if outcome.missing:
        return not_found(outcome.missing[0])
    if outcome.foreign_secret:
        message = f"Secret {token.secret_name} belongs to something else: choose another name in secretRef"
        return degraded(Reason.INVALID_SPEC, message)
    if outcome.rejected is not None:
        return rejected(outcome.rejected)
    if outcome.claims is not None and outcome.claims.expired(outcome.now.timestamp()):
        return degraded(Reason.TOKEN_EXPIRED, _expired(token))
    return None


def _expired(token: Token) -> str:
    if token.spec.refresh:
        return "the token has expired and is about to be renewed"
    return f"the token has expired and refresh is false: delete Secret {token.secret_name} for a new one"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
