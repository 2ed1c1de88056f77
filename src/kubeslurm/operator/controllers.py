"""All controllers of the operator, and the settings for their concurrency."""

from typing import cast

import msgspec

from kubeslurm.control.registration import Options, Registration
from kubeslurm.operator.settings.model import OperatorSettings
from kubeslurm.reconcile.accounting.registration import REGISTRATION as ACCOUNTING
from kubeslurm.reconcile.controller.registration import REGISTRATION as CONTROLLER
from kubeslurm.reconcile.loginset.registration import REGISTRATION as LOGINSET
from kubeslurm.reconcile.nodedrain.registration import REGISTRATION as NODEDRAIN
from kubeslurm.reconcile.nodeset.registration import REGISTRATION as NODESET
from kubeslurm.reconcile.restapi.registration import REGISTRATION as RESTAPI
from kubeslurm.reconcile.slurmcluster.registration import REGISTRATION as SLURMCLUSTER
from kubeslurm.reconcile.token.registration import REGISTRATION as TOKEN

REGISTRATIONS: tuple[Registration, ...] = (
    ACCOUNTING,
    CONTROLLER,
    LOGINSET,
    RESTAPI,
    SLURMCLUSTER,
    TOKEN,
    NODESET,
    NODEDRAIN,
)

# The settings of the operator with one field for the concurrency of each controller.
SETTINGS = cast(
    type[OperatorSettings],
    msgspec.defstruct(
        "OperatorSettings",
        [(flag, int, number) for flag, number in {each.flag: each.concurrency for each in REGISTRATIONS}.items()],
        bases=(OperatorSettings,),
        frozen=True,
        kw_only=True,
        rename="camel",
        forbid_unknown_fields=True,
    ),
)


def options(settings: OperatorSettings) -> Options:
    """What the settings say to all controllers."""
    return Options(
        cluster_domain=settings.cluster_domain or Options().cluster_domain,
        propagated_node_conditions=frozenset(settings.propagated_node_conditions),
        drain_on_node_conditions=frozenset(settings.drain_on_node_conditions),
        drain_on_node_taints=settings.drain_on_node_taints,
        slurm_drain_on_node=settings.slurm_drain_on_node,
    )


def enabled(settings: OperatorSettings) -> tuple[Registration, ...]:
    """The controllers that run with these settings."""
    given = options(settings)
    return tuple(each for each in REGISTRATIONS if each.enabled is None or each.enabled(given))


def concurrency(settings: OperatorSettings, registration: Registration) -> int:
    """How many passes of a controller run at once."""
    return int(getattr(settings, registration.flag, registration.concurrency))
