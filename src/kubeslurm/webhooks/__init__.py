"""Admission: what CEL in the CRDs cannot say."""
