"""slurmctld's Service, the address that it gives to Slurm's clients, and the ServiceMonitor for Prometheus."""

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import SERVICE_MONITOR
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.fragments import MetricsEndpoint
from kubeslurm.build.common.metadata import child_metadata, given, inherited, label_selector, object_tree
from kubeslurm.build.common.services import daemon_service, port_of

METRICS_PATHS = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")


def slurmctld_port(controller: Controller) -> int:
    """slurmctld listens where its Service does: Slurm's clients know only one port for both."""
    return port_of(controller.spec.service, names.SLURMCTLD_PORT)


def conf_server(controller: Controller) -> str:
    """Where slurmd and sackd fetch the configuration."""
    external = controller.spec.externalConfig
    if controller.spec.external and external is not None:
        return f"{external.host}:{external.port}"
    return f"{names.host(names.controller(controller.name), controller.namespace)}:{slurmctld_port(controller)}"


def service(controller: Controller) -> Tree:
    """The one address of slurmctld. It resolves to the pod as soon as the pod has an address."""
    spec, own = controller.spec.service, {"labels": labels.slurmctld(controller.name)}
    return daemon_service(
        child_metadata(controller, names.controller(controller.name), inherited(controller), given(spec), own),
        spec,
        names.SLURMCTLD,
        slurmctld_port(controller),
        labels.selector(names.SLURMCTLD, controller.name),
        publishNotReadyAddresses=True,
    )


def service_monitor(controller: Controller) -> Tree | None:
    """Tells Prometheus what to scrape, if the user wants metrics."""
    metrics = controller.spec.metrics
    monitor = metrics.serviceMonitor if metrics and metrics.enabled else None
    if monitor is None or not monitor.enabled:
        return None
    endpoints = monitor.endpoints or tuple(MetricsEndpoint(path=path) for path in METRICS_PATHS)
    user = {"labels": monitor.labels, "annotations": monitor.annotations}
    own = {"labels": labels.slurmctld(controller.name)}
    return object_tree(
        SERVICE_MONITOR,
        child_metadata(controller, names.controller(controller.name), user, own),
        spec={
            "selector": label_selector(labels.selector(names.SLURMCTLD, controller.name)),
            "namespaceSelector": {"matchNames": [controller.namespace]},
            "endpoints": [_endpoint(each, monitor.interval, monitor.scrapeTimeout) for each in endpoints],
        },
    )


def _endpoint(endpoint: MetricsEndpoint, interval: str, timeout: str) -> Tree:
    fields = {
        "port": names.SLURMCTLD,
        "scheme": "http",
        "path": endpoint.path,
        "interval": endpoint.interval or interval,
        "scrapeTimeout": endpoint.scrapeTimeout or timeout,
    }
    return {key: value for key, value in fields.items() if value}
