"""The Service in front of sshd in login pods."""

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build.common.metadata import child_metadata, given, inherited
from kubeslurm.build.common.services import daemon_service, port_of


def service(loginset: LoginSet) -> Tree:
    """The one address of all replicas."""
    spec, own = loginset.spec.service, {"labels": labels.login(loginset.name)}
    return daemon_service(
        child_metadata(loginset, loginset.name, inherited(loginset), given(spec), own),
        spec,
        names.LOGIN,
        port_of(spec, names.SSH_PORT),
        labels.selector(names.LOGIN, loginset.name),
    )
