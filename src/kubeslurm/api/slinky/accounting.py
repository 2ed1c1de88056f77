"""Accounting: slurmdbd and the database behind it."""

from typing import Annotated

from kubeslurm.api.meta import Conditions, Int64, Tree, Wire, defaulted, doc
from kubeslurm.api.resource import AGE, MESSAGE, READY, REASON, SLURM, Definition, SlurmResource
from kubeslurm.api.slinky.fragments import (
    ATOMIC,
    PORT,
    RAW,
    ConfigMapKeySelector,
    ExternalConfig,
    PodTemplate,
    SecretKeySelector,
    ServiceSpec,
)
from kubeslurm.api.slinky.rules import EXTERNAL_RULES, JWT_KEY_IMMUTABLE


class StorageConfig(Wire, frozen=True, kw_only=True):
    """The MySQL-compatible database that holds the accounting records."""

    host: Annotated[str, doc("Host name or address of the database.")]
    port: Annotated[int, defaulted("TCP port of the database.", **PORT)] = 3306
    database: Annotated[str, defaulted("Name of the database.")] = "slurm_acct_db"
    username: Annotated[str, doc("Database user.")] = ""
    passwordKeyRef: Annotated[SecretKeySelector, doc("Password of the database user.", **ATOMIC)]


class AccountingSpec(Wire, frozen=True, kw_only=True):
    """What the accounting service shall look like."""

    slurmKeyRef: Annotated[SecretKeySelector | None, doc("The shared key of auth/slurm.", **ATOMIC)] = None
    jwtKeyRef: Annotated[
        SecretKeySelector | None, doc("The HS256 key that signs and checks auth/jwt tokens. Immutable.", **ATOMIC)
    ] = None
    jwtHs256KeyRef: Annotated[
        SecretKeySelector | None, doc("Old name of jwtKeyRef, which wins when both are set.", **ATOMIC)
    ] = None
    jwksKeyRef: Annotated[
        ConfigMapKeySelector | None, doc("A JWKS file with the keys of an identity provider.", **ATOMIC)
    ] = None
    external: Annotated[bool, defaulted("slurmdbd runs elsewhere: make none here.")] = False
    externalConfig: Annotated[ExternalConfig | None, doc("Where the external slurmdbd listens.")] = None
    slurmdbd: Annotated[Tree | None, doc("Overrides for the slurmdbd container (a Kubernetes Container).", **RAW)] = (
        None
    )
    template: Annotated[PodTemplate | None, doc("Additions to the slurmdbd pod.")] = None
    extraConf: Annotated[str, doc("Lines appended to slurmdbd.conf.")] = ""
    storageConfig: Annotated[StorageConfig | None, doc("The database.")] = None
    service: Annotated[ServiceSpec | None, doc("The Service in front of slurmdbd (port 6819).")] = None

    @property
    def jwt_ref(self) -> SecretKeySelector | None:
        """The JWT key reference in force."""
        return self.jwtKeyRef or self.jwtHs256KeyRef


class AccountingStatus(Wire, frozen=True, kw_only=True):
    """What is known about the accounting service."""

    observedGeneration: Annotated[Int64, doc("The metadata.generation this status was computed for. (extension)")] = 0
    slurmVersion: Annotated[str, doc("Release of the running slurmdbd. (extension)")] = ""
    conditions: Conditions = ()


class Accounting(SlurmResource, frozen=True, kw_only=True):
    """Slurm's accounting: slurmdbd, which keeps jobs, users and limits in a database."""

    definition = Definition(
        short_names=("slurmdbd",),
        columns=(READY, REASON, SLURM, MESSAGE, AGE),
    )

    spec: Annotated[AccountingSpec, doc("", rules=(*EXTERNAL_RULES, JWT_KEY_IMMUTABLE))] = AccountingSpec()
    status: Annotated[AccountingStatus, doc("")] = AccountingStatus()
