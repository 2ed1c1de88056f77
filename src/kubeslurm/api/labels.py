"""Labels of child objects, and the subset that selects their pods."""

from kubeslurm.api import names


def selector(name: str, instance: str) -> dict[str, str]:
    """What selects the pods of one daemon of one object; immutable in workloads, so never more than this."""
    return {names.LABEL_INSTANCE: instance, names.LABEL_NAME: name}


def selector_text(name: str, instance: str) -> str:
    """The same selector in the form that autoscalers read from a status."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector(name, instance).items()))


def labels(name: str, instance: str, component: str) -> dict[str, str]:
    """What every child of one daemon of one object carries."""
    return {**selector(name, instance), names.LABEL_COMPONENT: component}


def slurmctld(instance: str) -> dict[str, str]:
    return labels(names.SLURMCTLD, instance, names.CONTROLLER)


def slurmrestd(instance: str) -> dict[str, str]:
    return labels(names.SLURMRESTD, instance, names.RESTAPI)


def slurmdbd(instance: str) -> dict[str, str]:
    return labels(names.SLURMDBD, instance, names.ACCOUNTING)


def login(instance: str) -> dict[str, str]:
    return labels(names.LOGIN, instance, names.LOGIN)


def worker(instance: str, controller_name: str) -> dict[str, str]:
    return {**labels(names.SLURMD, instance, names.WORKER), names.LABEL_CLUSTER: controller_name}
