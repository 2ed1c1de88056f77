"""slurmd's command line: where its configuration comes from, and what its node registers with."""

FEATURES = "Features"
_FEATURE_KEYS = frozenset({"Feature", FEATURES})


def pairs(extra_conf: str) -> dict[str, list[str]]:
    """The `Key=Value` tokens of an extraConf, values split at commas; a key given twice keeps all its values.

    Keys become title case, as existing workers have them. A token without `=` is left out; admission refuses it.
    """
    found: dict[str, list[str]] = {}
    for token in extra_conf.split():
        key, equals, value = token.partition("=")
        if key and equals:
            found.setdefault(key.capitalize(), []).extend(value.split(","))
    return found


def conf_argument(slurm_nodeset: str, extra_conf: str) -> str:
    """The value of `--conf`, in the literal single quotes that image entry points expect."""
    given = pairs(extra_conf)
    features = {slurm_nodeset}.union(*(given.get(key, ()) for key in _FEATURE_KEYS))
    items = {key: ",".join(values) for key, values in given.items() if key not in _FEATURE_KEYS}
    items[FEATURES] = ",".join(sorted(filter(None, features)))
    return "'" + " ".join(sorted(f"{key}={value}" for key, value in items.items())) + "'"


def arguments(conf_server: str, slurm_nodeset: str, extra_conf: str) -> list[str]:
    """Arguments of slurmd: a dynamic node that gets its configuration from slurmctld."""
    return ["-Z", "--conf-server", conf_server, "--conf", conf_argument(slurm_nodeset, extra_conf)]
