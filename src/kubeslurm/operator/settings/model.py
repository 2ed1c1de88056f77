"""The settings of each process, with their defaults."""

import msgspec

DISABLED = "0"


class SettingsError(ValueError):
    """Settings that cannot be used, with the remedy."""


class Common(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the operator and the admission server both need."""

    namespace: str = ""  # where this process lives; found in the pod when not set
    pod_name: str = ""
    namespaces: tuple[str, ...] = ()  # whose objects are served; empty for all
    kubeconfig: str = ""
    health_addr: str = ":8081"
    metrics_addr: str = ":8080"
    metrics_secure: bool = False
    leader_elect: bool = False
    leader_elect_namespace: str = ""
    log_level: str = "info"
    log_format: str = "auto"  # json, console, or auto: console in a terminal

    @property
    def lease_namespace(self) -> str:
        return self.leader_elect_namespace or self.namespace


class OperatorSettings(Common, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings of `kubeslurm operator`, besides the concurrency of each controller."""

    propagated_node_conditions: tuple[str, ...] = ()  # these word the reason of the drain of a cordoned node
    drain_on_node_conditions: tuple[str, ...] = ()  # these drain the workers on a node, cordoned or not
    drain_on_node_taints: bool = False  # so do taints that the workers do not tolerate
    slurm_drain_on_node: str = ""  # how Kubernetes nodes show a drain made in Slurm; empty for not at all
    cluster_domain: str = ""  # found in the pod's resolv.conf when not set


class WebhookSettings(Common, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings of `kubeslurm webhook`."""

    server_addr: str = ":9443"
    metrics_addr: str = DISABLED
    cert_dir: str = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  where Deployments already mount it
    cert_secret: str = ""  # set: we make, keep and rotate the certificates in this Secret
    service_name: str = "slurm-operator-webhook"
    configuration_name: str = "slurm-operator-webhook"


class LeaveSettings(Common, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings of what runs before the operator is removed."""

    deployment: str = "slurm-operator"
    wait: int = 240  # seconds for what is under way to finish


def address(text: str) -> tuple[str, int] | None:
    """Host and port of an address such as `:8081`; None when it is switched off."""
    if text == DISABLED:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 <= int(port) <= 65535:
        raise SettingsError(f"{text!r} is not an address: write HOST:PORT or :PORT, or 0 to switch it off.")
    return host.strip("[]"), int(port)
