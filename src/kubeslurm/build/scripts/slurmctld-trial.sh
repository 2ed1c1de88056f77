#!/bin/sh
# Starts slurmctld with the configuration on trial and stops it as soon as it runs. On failure its errors go to the
# termination log, which the kubelet shows in the pod's status.
mkdir -p /kubeslurm-trial/state /run/slurmctld
slurmctld -D -c >/kubeslurm-trial/log 2>&1 &
pid=$!
while kill -0 "$pid" 2>/dev/null; do
  if grep -q 'Running as primary' /kubeslurm-trial/log; then
    kill -9 "$pid"
    cat /kubeslurm-trial/log
    exit 0
  fi
  sleep 0.05
done
cat /kubeslurm-trial/log
grep -E 'error|fatal' /kubeslurm-trial/log | tail -n 20 | cut -c 1-300 >/dev/termination-log
exit 1
