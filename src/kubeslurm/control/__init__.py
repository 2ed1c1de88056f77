"""What controllers share."""
