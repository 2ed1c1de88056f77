"""Parses each schema of Kubernetes once: the library would read megabytes of JSON again for every object."""

import functools

from kubernetes_validate import utils  # type: ignore[import-untyped]

utils.schema_contents = functools.cache(utils.schema_contents)
