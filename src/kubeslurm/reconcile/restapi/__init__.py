"""The controller of the kind RestApi."""
