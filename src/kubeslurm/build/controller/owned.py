"""Settings of slurm.conf that belong to the operator: another value would take the cluster down.

A trial cannot tell, because it must not use the state, the address and the keys of the running cluster. Only what the
files mean together counts: a line that says what is so anyway is in order.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kubeslurm.api import names
from kubeslurm.build.controller.config import SLURM_CONF, Sources, generated, provided
from kubeslurm.slurm import conf
from kubeslurm.slurm.conf.lint import is_record
from kubeslurm.slurm.conf.records import Line, lines


class Owned(msgspec.Struct, frozen=True):
    """One setting: how it is written, what a user can do instead, and other values that mean the same."""

    name: str
    remedy: str = "remove the line"
    also: tuple[str, ...] = ()
    repeated: bool = False  # each line adds to those before; the others are replaced by the last


_ADDRESS = "remove the line: slurmctld is found by its Service"
_KEYS = "remove the line: the cluster's own key is used, see spec.slurmKeyRef"
OWNED = (
    Owned("AuthType", _KEYS),
    Owned("AuthAltTypes", "remove the line: the operator needs tokens, see spec.jwtKeyRef"),
    Owned("BackupAddr", _ADDRESS),
    Owned("BackupController", _ADDRESS),
    Owned("ClusterName", "remove the line: the name is spec.clusterName of the Controller, which never changes"),
    Owned("ControlAddr", _ADDRESS),
    Owned("ControlMachine", _ADDRESS),
    Owned("CredType", _KEYS),
    Owned("CryptoType", _KEYS),
    Owned("SlurmctldAddr", _ADDRESS),
    Owned("SlurmctldHost", _ADDRESS, repeated=True),
    Owned("SlurmctldPort", "set spec.service.port of the Controller instead"),
    Owned("SlurmdPort", "remove the line: the workers' probes and Services use this port"),
    Owned("SlurmdUser", "remove the line: slurmd starts jobs as their users", also=("0",)),
    Owned("SlurmUser", "remove the line: the containers run as this user", also=(str(names.SLURM_UID),)),
    Owned("StateSaveLocation", "set spec.persistence of the Controller to choose the volume of this folder instead"),
)
# Lists of options in which those of the operator must stay, whatever is added to them.
LISTS = ("AuthAltParameters", "AuthInfo", "SlurmctldParameters")


def problems(sources: Sources, files: Mapping[str, str]) -> tuple[conf.Problem, ...]:
    """What a user has set although it belongs to the operator, with file and line."""
    if sources.controller.spec.external:
        return ()
    found = [line for line in lines(files) if not is_record(line.entry)]
    ours = conf.values(conf.parse(generated(sources)))
    controller = sources.controller
    ours["slurmctldaddr"] = names.host(names.controller(controller.name), controller.namespace)
    return (*_replaced(sources), *_changed(found, ours), *_incomplete(found, ours))


def _replaced(sources: Sources) -> Iterable[conf.Problem]:
    for name, data in provided(sources):
        if SLURM_CONF in data:
            message = f"the file of ConfigMap {name} is not used: put its lines into spec.extraConf of the Controller"
            yield conf.Problem(SLURM_CONF, 0, message)


def _changed(found: list[Line], ours: Mapping[str, str]) -> Iterable[conf.Problem]:
    for owned in OWNED:
        key = owned.name.lower()
        given = [(line, pair.value) for line in found for pair in line.entry.pairs if pair.key == key]
        counts = given if owned.repeated else given[-1:]
        for line, value in counts:
            if not _same(value, (ours.get(key, ""), *owned.also)):
                instead = f" (here {ours[key]})" if key in ours else ""
                message = f"{owned.name}={value}: the operator sets it{instead}; {owned.remedy}"
                yield conf.Problem(line.file, line.number, message)


def _incomplete(found: list[Line], ours: Mapping[str, str]) -> Iterable[conf.Problem]:
    meant = conf.values([line.entry for line in found])
    for name in LISTS:
        key = name.lower()
        missing = [option for option in ours[key].split(",") if option not in _options(meant.get(key, ""))]
        if missing:
            line = next(line for line in reversed(found) if line.entry.get(key) is not None)
            message = f"{name} must contain {','.join(missing)}: add it, or move the line to spec.extraConf"
            yield conf.Problem(line.file, line.number, message)


def _options(text: str) -> list[str]:
    return [option.strip() for option in text.split(",")]


def _same(value: str, allowed: Iterable[str]) -> bool:
    if value.startswith("/"):
        return value.rstrip("/") in allowed
    return value.lower() in (each.lower() for each in allowed)
