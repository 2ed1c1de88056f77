"""The metrics of the Kubernetes client, with their names and labels."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("kubeslurm_api_requests_total", "Requests to the API server.", ["verb", "kind", "code"])
REQUEST_SECONDS = Histogram(
    "kubeslurm_api_request_seconds",
    "Duration of requests to the API server, without watches.",
    ["verb"],
    buckets=(0.005, 0.02, 0.1, 0.5, 2.0, 10.0),
)
APPLIES_SKIPPED = Counter("kubeslurm_applies_skipped_total", "Applies skipped because nothing would change.", ["kind"])
WATCH_EVENTS = Counter("kubeslurm_watch_events_total", "Objects received by lists and watches.", ["kind"])
WATCH_RESTARTS = Counter("kubeslurm_watch_restarts_total", "Restarts of watches, by cause.", ["kind", "cause"])
DECODE_FAILURES = Counter("kubeslurm_decode_failures_total", "Objects skipped as undecodable.", ["kind"])
EVENTS_DROPPED = Counter("kubeslurm_events_dropped_total", "Events not sent, by cause.", ["cause"])
LEADER = Gauge("kubeslurm_leader", "1 while this replica is the leader.")
