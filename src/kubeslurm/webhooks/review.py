"""The question that the API server asks before it stores an object, and our answer."""

import msgspec

from kubeslurm.api.meta import Tree

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class Request(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is about to happen to which object."""

    uid: str
    operation: str = ""
    namespace: str = ""
    name: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class Review(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The envelope; the answer goes back in the version it came in."""

    api_version: str
    kind: str
    request: Request


class Verdict(msgspec.Struct, frozen=True):
    """Why an object is refused (nothing: it is not), and what its author should know anyway."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


ALLOWED = Verdict()
_decoder = msgspec.json.Decoder(Review)


def decode(body: bytes) -> Review:
    """Reads an AdmissionReview; raises ValueError when it is something else."""
    review = _decoder.decode(body)
    if review.api_version not in VERSIONS or review.kind != "AdmissionReview":
        raise ValueError(f"{review.api_version} {review.kind} is not an AdmissionReview of {' or '.join(VERSIONS)}")
    return review


def answer(review: Review, verdict: Verdict) -> Tree:
    """The AdmissionReview that carries the verdict."""
    response: Tree = {"uid": review.request.uid, "allowed": not verdict.errors}
    if verdict.errors:
        message = "; ".join(verdict.errors)
        response["status"] = {"status": "Failure", "code": 422, "reason": "Invalid", "message": message}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return {"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response}
