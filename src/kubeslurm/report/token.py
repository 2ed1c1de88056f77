"""The status of a Token: for whom, since when, until when."""

from datetime import UTC, datetime

from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.token import Token
from kubeslurm.report.conditions import Finding, conditions, degraded, summarize
from kubeslurm.report.reasons import Reason
from kubeslurm.slurm.tokens import Claims


def status(token: Token, claims: Claims | None, blocked: Finding | None, now: datetime) -> Tree:
    """The whole status; `claims` are those of the token in the Secret."""
    expired = claims is not None and claims.expired(now.timestamp())
    wrong = blocked or (degraded(Reason.TOKEN_EXPIRED, _expired(token)) if expired else None)
    summary = summarize(
        failure=wrong,
        progress=None,
        ready=claims is not None and not expired and blocked is None,
        message=f"Secret {token.secret_name} holds a token of user {token.spec.user}",
    )
    times = {"issuedAt": _time(claims.iat), "expiresAt": _time(claims.exp)} if claims else {}
    return {
        "observedGeneration": token.metadata.generation,
        "secretName": token.secret_name,
        **times,
        "conditions": conditions(token.status.conditions, summary, generation=token.metadata.generation, now=now),
    }


def no_key(message: str) -> Finding:
    return degraded(Reason.SECRET_KEY_NOT_FOUND, message)


def rejected(message: str) -> Finding:
    return degraded(Reason.REJECTED, message)


def invalid(message: str) -> Finding:
    return degraded(Reason.INVALID_SPEC, message)


def _expired(token: Token) -> str:
    if token.spec.refresh:
        return "the token has expired and is about to be renewed"
    return f"the token has expired and refresh is false: delete Secret {token.secret_name} for a new one"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
