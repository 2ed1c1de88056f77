"""Types of the objects that users write and that the operator reads."""
