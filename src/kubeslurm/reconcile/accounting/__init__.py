"""The controller of the kind Accounting."""
