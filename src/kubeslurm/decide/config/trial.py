"""Reads from a pod's status how the trial of a configuration went, and where in the files the mistake is."""

import re
from collections.abc import Iterable, Mapping

from kubeslurm.api.views import Pod
from kubeslurm.decide.config.facts import Trial

_KILLED = 128
_ERROR = re.compile(r"^(?:\w+: )?(?:\[[^\]]*\] )?(?:error|fatal): (?P<text>.*)$")
_PLACE = re.compile(r"in file (?P<path>\S+) line (?P<line>\d+)(?:: (?P<text>.*))?")
_PARTITION = re.compile(r"\bpartition (?P<name>[\w.-]+)")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,}")
# Logged for many good configurations too, or only in consequence of another error.
_NOISE = ("specified more than once", "MailProg is invalid", "Unable to process configuration file")


def outcome(pod: Pod | None, container: str) -> Trial | None:
    """The outcome as far as it is known, with slurmctld's own errors; None when no trial was started."""
    if pod is None or pod.deleting:
        return None
    status = pod.container_status(container)
    ended = status.state.terminated if status else None
    if ended is not None and ended.exitCode == 0:
        return Trial("passed")
    if ended is not None and 0 < ended.exitCode < _KILLED and ended.reason == "Error":
        return Trial("failed", ended.message)
    if ended is not None or pod.finished:
        return Trial("inconclusive", (ended.reason if ended else "") or pod.status.phase)
    waiting = status.state.waiting if status else None
    return Trial("running", waiting.message if waiting else "")


def explained(log: str, files: Mapping[str, str]) -> str:
    """The errors of slurmctld as `file:line: reason`, without those that only follow from another."""
    texts = [match["text"].strip() for line in log.splitlines() if (match := _ERROR.match(line.strip()))]
    causes = [text for text in texts if not any(noise in text for noise in _NOISE)] or texts
    return (
        "; ".join(dict.fromkeys(_placed(text, files) for text in causes)) or "slurmctld ended without an error message"
    )


def _placed(text: str, files: Mapping[str, str]) -> str:
    if place := _PLACE.search(text):
        return f"{place['path'].rpartition('/')[2]}:{place['line']}: {(place['text'] or text).strip()}"
    for pattern in _patterns(text):
        for name, content in files.items():
            if line := _last_line(pattern, content):
                return f"{name}:{line}: {text}"
    return text


def _patterns(text: str) -> Iterable[str]:
    """How the line may look that a sentence is about: it names a partition, or a key."""
    if partition := _PARTITION.search(text):
        yield rf"^\s*PartitionName\s*=\s*{re.escape(partition['name'])}\b"
    if "STEP_MGR" in text:
        yield r"enable_stepmgr"
    for word in _WORD.findall(text):
        yield rf"(^|\s){word}\s*="


def _last_line(pattern: str, content: str) -> int:
    search = re.compile(pattern, re.IGNORECASE)
    return max((number for number, line in enumerate(content.splitlines(), start=1) if search.search(line)), default=0)
