"""The metrics of the engine, with their names and labels."""

from prometheus_client import Counter, Gauge, Histogram

QUEUE_DEPTH = Gauge("kubeslurm_queue_depth", "Keys ready to be reconciled.", ["controller"])
QUEUE_DELAYED = Gauge("kubeslurm_queue_delayed", "Keys that wait for their deadline.", ["controller"])
QUEUE_OLDEST = Gauge("kubeslurm_queue_oldest_seconds", "Age of the longest waiting ready key.", ["controller"])
RECONCILES = Counter("kubeslurm_reconciles_total", "Reconcile passes by outcome.", ["controller", "outcome"])
RECONCILE_SECONDS = Histogram(
    "kubeslurm_reconcile_seconds",
    "Duration of a reconcile pass.",
    ["controller"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0),
)
STORE_SIZE = Gauge("kubeslurm_store_objects", "Objects held in memory.", ["store"])
LOOP_STALL = Histogram(
    "kubeslurm_loop_stall_seconds",
    "How late the event loop ran a timer, counted from 10 ms.",
    buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
LOOP_STALL_WORST = Gauge("kubeslurm_loop_stall_worst_seconds", "Worst lateness of the event loop since the start.")
