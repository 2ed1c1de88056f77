"""Workers: their pods, claims and revisions."""
