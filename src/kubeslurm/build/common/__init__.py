"""What builders of several kinds share."""
