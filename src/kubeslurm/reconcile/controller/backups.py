"""Backups of slurmctld, which another operator may have started and this one does not serve."""

import msgspec

from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common.adoption import is_of_another_operator
from kubeslurm.decide.config.facts import Facts


def with_backups(controller: Controller, facts: Facts) -> Facts:
    """The facts; nothing is desired where backups run: a StatefulSet or slurm.conf of ours would end them."""
    live, ha = facts.statefulset, controller.spec.ha
    if live is None or ha is None or not ha.enabled or not is_of_another_operator(live):
        return facts
    backups = max(int(live.spec.get("replicas", 1)) - 1, 0)
    return msgspec.structs.replace(facts, backups=backups, desired=None, trial=None) if backups else facts
