"""Admission webhook: the rules that CEL in the CRDs cannot express."""
