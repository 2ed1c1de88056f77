"""Token: keeps one user's Slurm token fresh in a Secret."""

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kubeslurm.api.kinds import SECRET, TOKEN
from kubeslurm.api.slinky.token import Token
from kubeslurm.api.views import Secret
from kubeslurm.build import token as build
from kubeslurm.control import references, refusals, status
from kubeslurm.control.registration import Context
from kubeslurm.decide.token import Facts, Issue, decide
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.report import token as report
from kubeslurm.report.events import Event
from kubeslurm.report.token import Outcome
from kubeslurm.slurm import tokens


class TokenReconciler:
    """One pass: look at the Secret, issue a token if one is due, report."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.time) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events
        self.clock = clock

    async def reconcile(self, key: Key) -> Requeue | None:
        token = self.caches.store(TOKEN).get(key)
        if token is None or token.deleting:
            return None  # the Secret is owned by the Token and goes with it

        now, ref = self.clock(), token.spec.jwt_ref
        moment = datetime.fromtimestamp(now, UTC)
        signing_key = references.key_bytes(references.secret(self.caches, key.namespace, ref), ref)
        if not signing_key:
            missing = references.key_reference(key.namespace, ref, "jwtKeyRef")
            return await self._report(token, Outcome(now=moment, missing=(missing,)))
        held = self.caches.store(SECRET).get(Key(key.namespace, token.secret_name))
        if held is not None and _is_foreign(token, held):
            return await self._report(token, Outcome(now=moment, foreign_secret=True))

        claims = self._claims(token, held, signing_key)
        issue, again = decide(_facts(token, held, claims), now)
        if issue is Issue.NEW:
            try:
                claims = await self._issue(token, held, signing_key, now)
            except refusals.REFUSED as error:
                rejected = refusals.rejection_of(error, "")
                return await self._report(token, Outcome(now=moment, claims=claims, rejected=rejected))
        await self._report(token, Outcome(now=moment, claims=claims))
        return Requeue(after=again) if again is not None else None

    async def _issue(self, token: Token, held: Secret | None, signing_key: bytes, now: float) -> tokens.Claims:
        lifetime = token.spec.validity.total_seconds()
        jwt = tokens.mint(signing_key, token.spec.user, now=now, lifetime=lifetime, identity=_identity(token))
        if held is not None and (held.immutable or _is_adopted(token, held)):
            # An immutable Secret cannot take another value, and one of a predecessor has the wrong owner.
            await self.kube.delete(SECRET, Key(held.namespace, held.name), uid=held.metadata.uid)
        await self.kube.apply(build.secret(token, jwt, hashlib.sha256(signing_key).hexdigest()[:16]))
        self.events.normal(
            token, Event.TOKEN_ISSUED, f"issued a token for {token.spec.user}, valid for {lifetime:.0f} s"
        )
        return tokens.read(signing_key, jwt)

    def _claims(self, token: Token, held: Secret | None, signing_key: bytes) -> tokens.Claims | None:
        value = references.data_of(held).get(token.secret_key, b"")
        try:
            return tokens.read(signing_key, value.decode("ascii", errors="replace")) if value else None
        except tokens.BadToken:
            return None

    async def _report(self, token: Token, outcome: Outcome) -> Requeue | None:
        await status.write(self.kube, TOKEN, token, report.status(token, outcome))
        return refusals.again(outcome.rejected)


def _facts(token: Token, held: Secret | None, claims: tokens.Claims | None) -> Facts:
    return Facts(
        exists=held is not None,
        claims=claims,
        user=token.spec.user,
        lifetime=tokens.clamp(token.spec.validity.total_seconds()),
        refresh=token.spec.refresh,
    )


def _identity(token: Token) -> tokens.Identity | None:
    who = token.spec.identity
    if who is None:
        return None
    # Slurm refuses an identity with any of these missing or empty.
    return tokens.Identity(
        uid=who.uid,
        gid=who.gid,
        name=token.spec.user,
        gecos=who.gecos or token.spec.user,
        dir=who.dir or "/",
        shell=who.shell or "/bin/sh",
        gids=tuple(dict.fromkeys((who.gid, *who.gids))),
    )


def _is_foreign(token: Token, held: Secret) -> bool:
    """A Secret somebody else made for something else: nothing of it may be overwritten."""
    owner = held.metadata.controller
    if owner is None:
        return token.secret_key not in held.data
    ours = (owner.kind == "Token" and owner.uid == token.metadata.uid) or _is_adopted(token, held)
    return not ours


def _is_adopted(token: Token, held: Secret) -> bool:
    """A Secret of the predecessor, which made the signing key's Secret its owner."""
    owner, ref = held.metadata.controller, token.spec.jwt_ref
    return owner is not None and owner.kind == "Secret" and ref is not None and owner.name == ref.name
