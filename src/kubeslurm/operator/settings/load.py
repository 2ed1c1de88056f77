"""Reads settings: one YAML file, then the environment, then flags; the later wins."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kubeslurm.operator.settings import flags
from kubeslurm.operator.settings.model import Common, SettingsError, address

ENV_PREFIX = "KUBESLURM_"
SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
RESOLV_CONF = Path("/etc/resolv.conf")
NODE_DRAIN_MODES = ("", "Condition", "Taint", "Cordon")

S = TypeVar("S", bound=Common)


def load(kind: type[S], argv: Sequence[str], environ: Mapping[str, str]) -> tuple[S, tuple[str, ...]]:
    """The settings that the file, the environment and the flags add up to, and warnings about them."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    names = {name.replace("_", "-"): name for name in fields}
    booleans = {flag for flag, name in names.items() if fields[name] is bool}
    given = flags.parse(argv, {*names, "config", "zap-log-level", "zap-encoder", "zap-devel"}, {*booleans, "zap-devel"})

    texts = {name: environ[key] for name in fields if (key := ENV_PREFIX + name.upper()) in environ}
    texts |= _from_zap(given.values)
    texts |= {name: given.values[flag] for flag, name in names.items() if flag in given.values}

    path = given.values.get("config") or environ.get(ENV_PREFIX + "CONFIG", "")
    values = _from_file(kind, path) if path else {}
    values |= {name: _value(name, fields[name], text) for name, text in texts.items()}
    values.setdefault("pod_name", environ.get("POD_NAME", ""))
    values.setdefault("namespace", environ.get("POD_NAMESPACE") or _own_namespace())
    if "cluster_domain" in fields:
        values.setdefault("cluster_domain", _cluster_domain())
    return _checked(kind(**values)), given.warnings


def _from_file(kind: type[Common], path: str) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(Path(path).read_text()) or {}
        loaded = msgspec.convert(tree, kind)
    except OSError as error:
        raise SettingsError(f"the settings file {path} cannot be read ({error.strerror}).") from error
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise SettingsError(f"the settings file {path} is not valid: {error}.") from error
    given = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    return {given[key]: getattr(loaded, given[key]) for key in tree}


def _from_zap(values: Mapping[str, str]) -> dict[str, str]:
    """Zap's logging flags in our terms; a number is a verbosity, and everything above zero is debugging."""
    texts: dict[str, str] = {}
    if "zap-devel" in values and flags.boolean("--zap-devel", values["zap-devel"]):
        texts |= {"log_level": "debug", "log_format": "console"}
    if level := values.get("zap-log-level"):
        texts["log_level"] = (
            "debug" if level.isdigit() and int(level) else {"0": "info", "panic": "critical"}.get(level, level)
        )
    if encoder := values.get("zap-encoder"):
        texts["log_format"] = encoder
    return texts


def _value(name: str, kind: Any, text: str) -> Any:
    if kind is bool:
        return flags.boolean(name, text)
    if kind is int:
        if not text.isdigit():
            raise SettingsError(f"{name} is {text!r}: write a whole number.")
        return int(text)
    if kind is str:
        return text
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _checked(settings: S) -> S:
    address(settings.health_addr)
    if address(settings.metrics_addr) is None and settings.metrics_secure:
        raise SettingsError("metrics-secure needs a metrics address: set metrics-addr to something other than 0.")
    if settings.log_level not in {"debug", "info", "warning", "error", "critical"}:
        raise SettingsError(
            f"the log level {settings.log_level!r} is unknown: use debug, info, warning, error or critical."
        )
    if settings.log_format not in {"auto", "json", "console"}:
        raise SettingsError(f"the log format {settings.log_format!r} is unknown: use auto, json or console.")
    if getattr(settings, "slurm_drain_on_node", "") not in NODE_DRAIN_MODES:
        raise SettingsError("slurm-drain-on-node must be Condition, Taint or Cordon, or empty to leave nodes alone.")
    if "Ready" in getattr(settings, "drain_on_node_conditions", ()):
        raise SettingsError("drain-on-node-conditions must not name Ready: it would drain every healthy node.")
    for field in msgspec.structs.fields(settings):
        if field.name.endswith("_workers") and getattr(settings, field.name) < 1:
            raise SettingsError(f"{field.name} must be at least 1.")
    return settings


def cluster_domain(resolv_conf: str) -> str:
    """The DNS domain of the cluster, from the search list that the kubelet gives to pods."""
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["search"]:
            for entry in words[1:]:
                if entry.startswith("svc."):
                    return entry.removeprefix("svc.").rstrip(".")
    return "cluster.local"


def _cluster_domain() -> str:
    try:
        return cluster_domain(RESOLV_CONF.read_text())
    except OSError:
        return cluster_domain("")


def _own_namespace() -> str:
    try:
        return SERVICE_ACCOUNT_NAMESPACE.read_text().strip()
    except OSError:
        return "default"
