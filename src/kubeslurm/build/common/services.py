"""Services in front of daemons."""

from collections.abc import Mapping

from kubeslurm.api.kinds import SERVICE
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.fragments import ServiceSpec
from kubeslurm.build.common.merge import merge_service_spec
from kubeslurm.build.common.metadata import object_tree


def port_of(service: ServiceSpec | None, usual: int) -> int:
    """Where the Service listens."""
    return (service and service.port) or usual


def service_port(daemon: str, port: int, node_port: int = 0) -> Tree:
    """The port that the operator adds to a daemon's Service."""
    tree: Tree = {"name": daemon, "protocol": "TCP", "port": port, "targetPort": daemon}
    return tree | ({"nodePort": node_port} if node_port else {})


def daemon_service(
    metadata: Tree,
    service: ServiceSpec | None,
    daemon: str,
    port: int,
    selector: Mapping[str, str],
    **defaults: object,
) -> Tree:
    """The Service of one daemon: what the user wants over our defaults, with our port and our selector."""
    spec = {"type": "ClusterIP", **defaults, **((service and service.spec) or {})}
    own_port = service_port(daemon, port, service.nodePort if service else 0)
    return object_tree(SERVICE, metadata, spec=merge_service_spec(spec, own_port, selector))
