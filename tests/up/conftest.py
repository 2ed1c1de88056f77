"""Failures are shown as those of the end-to-end tests."""

from tests.e2e.conftest import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
