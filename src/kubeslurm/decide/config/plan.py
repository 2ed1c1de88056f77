"""What a pass over a Controller does."""

import msgspec

from kubeslurm.decide.config.acceptance import Acceptance, decide_acceptance
from kubeslurm.decide.config.delivery import Delivery, decide_delivery
from kubeslurm.decide.config.facts import Configuration, Facts
from kubeslurm.decide.node_loss import is_lost


class Plan(msgspec.Struct, frozen=True):
    """The whole pass."""

    acceptance: Acceptance
    delivery: Delivery
    config: Configuration | None  # the accepted one that slurmctld shall run with; None: its files are not known
    delivered: str  # digest of what the ConfigMap holds afterwards
    keeps_slurmctld: bool  # whether the StatefulSet is applied
    frees_pod: bool  # the node of the slurmctld pod is gone
    refreshes_files: bool  # of the pod, after an edit of the ConfigMap was undone


def decide(facts: Facts) -> Plan:
    """Acceptance first, then delivery of what is accepted."""
    acceptance = decide_acceptance(facts)
    config = acceptance.deliver or facts.accepted
    desired = facts.desired is not None
    # A new pod would read the new key, whatever it was made for.
    starts = not facts.external and facts.waiting_key is None and _may_start(facts, acceptance)
    return Plan(
        acceptance=acceptance,
        delivery=decide_delivery(facts, config),
        config=config,
        delivered=config.digest if config else facts.delivered,
        keeps_slurmctld=desired and config is not None and starts,
        frees_pod=facts.pod is not None and is_lost(facts.pod, facts.node, facts.node_missing_for),
        refreshes_files=desired and facts.edited and config is not None,
    )


def _may_start(facts: Facts, acceptance: Acceptance) -> bool:
    """Whether slurmctld runs already, or may be started for the first time.

    It registers its cluster in the database when it first starts. No configuration may be on trial then: a first start
    with the address of a slurmdbd that is no longer desired would never end.
    """
    return facts.statefulset is not None or not (facts.accounting_awaited or acceptance.on_trial)
