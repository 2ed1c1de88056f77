"""What is wrong with a daemon's pod, and what to do about it."""

from collections.abc import Iterable

from kubeslurm.api.views import ContainerStatus, Pod
from kubeslurm.report.conditions import Finding, degraded
from kubeslurm.report.reasons import Reason

_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_CRASH = "CrashLoopBackOff"


def pod_failure(pod: Pod) -> Finding | None:
    """The first thing in a pod's status that will not pass by itself."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            return degraded(Reason.UNSCHEDULABLE, f"no node takes pod {pod.name}: {condition.message}")
    for status in (*pod.status.initContainerStatuses, *pod.status.containerStatuses):
        if wrong := _container_failure(pod, status):
            return wrong
    return None


def first_pod_failure(pods: Iterable[Pod]) -> Finding | None:
    """The first failure among pods that are to stay."""
    return next((failure for pod in pods if not pod.deleting and (failure := pod_failure(pod))), None)


def _container_failure(pod: Pod, status: ContainerStatus) -> Finding | None:
    waiting = status.state.waiting
    if waiting is None:
        return None
    if waiting.reason in _IMAGE:
        message = f"pod {pod.name} cannot pull {status.image}: check the name and the pull secrets ({waiting.message})"
        return degraded(Reason.IMAGE_PULL_FAILED, message)
    if waiting.reason == _CRASH:
        ended = status.lastState.terminated
        code = f"exit code {ended.exitCode}" if ended else "it keeps ending"
        message = f"container {status.name} of pod {pod.name} restarts again and again ({code}): see its log"
        return degraded(Reason.CRASH_LOOP, message)
    return None
