"""Pure reports: observation and plan in, status and events out."""
