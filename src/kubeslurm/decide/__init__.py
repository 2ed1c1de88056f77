"""Pure decisions: spec and observation in, a plan out."""
