#!/bin/sh
# A login pod is ready when users can submit jobs: sshd runs, and slurmctld answers with the credentials of sackd.
test -S /run/slurm/sack.socket && kill -0 "$(cat /run/sshd.pid)" && sinfo --noheader --format=%P > /dev/null
