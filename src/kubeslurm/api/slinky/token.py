"""Token: a Slurm JWT for one user, kept fresh in a Secret."""

from datetime import timedelta
from typing import Annotated

from kubeslurm.api.duration import PATTERN, parse_duration
from kubeslurm.api.meta import Conditions, Int64, Rule, Time, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, MESSAGE, READY, REASON, Column, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import ATOMIC, SecretKeySelector
from kubeslurm.api.slinky.rules import JWT_KEY_IMMUTABLE

DEFAULT_LIFETIME = timedelta(minutes=15)
DEFAULT_USER = "nobody"
DEFAULT_KEY = "SLURM_JWT"


class Identity(Wire, frozen=True, kw_only=True):
    """The user's account, put into the token so that no daemon has to look the user up."""

    uid: Annotated[int, doc("User id.", minimum=0)]
    gid: Annotated[int, doc("Primary group id.", minimum=0)]
    groups: Annotated[tuple[str, ...], doc("Accepted, without effect: tokens carry ids, see gids.")] = ()
    gids: Annotated[tuple[int, ...], doc("Ids of further groups.")] = ()
    gecos: Annotated[str, doc("Full name.")] = ""
    dir: Annotated[str, doc("Home directory.")] = ""
    shell: Annotated[str, doc("Login shell.")] = ""


class TokenSpec(Wire, frozen=True, kw_only=True):
    """Whom the token is for, and how long it is valid."""

    jwtKeyRef: Annotated[SecretKeySelector | None, doc("The HS256 key that signs the token. Immutable.", **ATOMIC)] = (
        None
    )
    jwtHs256KeyRef: Annotated[
        SecretKeySelector | None, doc("Old name of jwtKeyRef, which wins when both are set.", **ATOMIC)
    ] = None
    username: Annotated[str, doc("The Slurm user; `nobody` when empty.")]
    lifetime: Annotated[
        str | None,
        doc(
            "How long a token is valid, such as 1h; 15 minutes when absent.",
            rules=[
                Rule(message="lifetime must be a duration such as 15m or 12h", rule=f"self.matches(r'{PATTERN}')"),
            ],
        ),
    ] = None
    refresh: Annotated[bool, defaulted("Issue a new token before the old one expires.")] = True
    secretRef: Annotated[
        SecretKeySelector | None,
        doc("The Secret to write; `<name>-jwt-<username>` with key SLURM_JWT when absent.", **ATOMIC),
    ] = None
    identity: Annotated[Identity | None, doc("The user's account, carried inside the token. (extension)")] = None

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The JWT key reference in force."""
        return self.jwtKeyRef or self.jwtHs256KeyRef

    @property
    def user(self) -> str:
        return self.username or DEFAULT_USER

    @property
    def validity(self) -> timedelta:
        """The lifetime in force."""
        return parse_duration(self.lifetime) if self.lifetime else DEFAULT_LIFETIME


class TokenStatus(Wire, frozen=True, kw_only=True):
    """When the token was issued."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for. (extension)")] = 0
    issuedAt: Annotated[Time | None, doc("When the current token was issued.")] = None
    expiresAt: Annotated[Time | None, doc("When the current token expires. (extension)")] = None
    secretName: Annotated[str, doc("The Secret that holds the token. (extension)")] = ""
    conditions: Conditions = ()


class Token(SlurmResource, frozen=True, kw_only=True):
    """A JSON Web Token with which one user (or program) may use Slurm, kept in a Secret."""

    definition = Definition(
        short_names=("tokens", "jwt"),
        columns=(
            Column("USER", ".spec.username", "string"),
            Column("IAT", ".status.issuedAt", "date"),
            Column("EXPIRES", ".status.expiresAt", "string", priority=1),
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
    )

    spec: Annotated[
        TokenSpec,
        doc(
            "",
            rules=(
                Rule(
                    message="jwtKeyRef or jwtHs256KeyRef must be set",
                    rule="has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
                ),
                JWT_KEY_IMMUTABLE,
            ),
        ),
    ]
    status: Annotated[TokenStatus, doc("")] = TokenStatus()

    @property
    def secret_name(self) -> str:
        """The Secret that holds the token."""
        return (self.spec.secretRef and self.spec.secretRef.name) or f"{self.name}-jwt-{self.spec.username}"

    @property
    def secret_key(self) -> str:
        return (self.spec.secretRef and self.spec.secretRef.key) or DEFAULT_KEY
