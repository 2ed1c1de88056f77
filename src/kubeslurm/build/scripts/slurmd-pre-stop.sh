#!/bin/sh
# Sets the node down before slurmd stops, so that Slurm requeues the jobs of a deleted pod at once. A reason that an
# admin gave is kept, also inside a reason of ours. The time limits keep an unreachable slurmctld from using up the
# grace period.
node="${SLURMD_NODENAME:-$(hostname)}"
reason='slurm-operator: Pod is terminating'
shown=$(timeout 5 scontrol --oneliner show node "$node")
given=$(printf %s "$shown" | sed 's/.*Reason=//; s/ \[[^[]*@[^]]*\].*//')
case "$shown" in
  *State=*Reason=slurm-operator:*) case "$given" in *' (was: '*) reason=$given ;; esac ;;
  *State=*DRAIN*Reason=* | *State=*DOWN*Reason=*) reason=$given ;;
esac
timeout 10 scontrol update nodename="$node" state=down reason="$reason" || true
