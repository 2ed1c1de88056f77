"""Pure builders: an object in, the desired objects out."""
