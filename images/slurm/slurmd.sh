#!/bin/bash
# Starts slurmd with $SLURMD_OPTIONS and the container's arguments, and keeps it running.
#
# Job steps are separate processes: when slurmd exits, it is restarted and they continue. If the container ended, the
# jobs would end with it.
set -u
NAME=slurmd
# shellcheck source=supervise.sh
. "${KUBESLURM_LIB:-/usr/local/lib/kubeslurm}/supervise.sh"

topology=${SLINKY_TOPOLOGY:-${POD_TOPOLOGY:-}}

# Removes quotes, which were meant for a shell. Nothing is evaluated.
unquoted() {
  local text=${1//\'/}
  printf '%s' "${text//\"/}"
}

# has PAIRS KEY: whether a Key=Value list sets the key.
has() { [[ " ${1,,}" == *" ${2,,}="* ]]; }

# The value of a key in the output of slurmd -C.
hardware() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" <<< "$found" | head -n 1; }

# Cores and memory of the machine beyond the limits of this pod.
reserved() {
  local found cores spare
  found=$(slurmd -C 2> /dev/null)
  if [[ ${POD_CPUS:-0} -gt 0 ]] && ! has "$1" CoreSpecCount; then
    cores=$(($(hardware Boards) * $(hardware SocketsPerBoard) * $(hardware CoresPerSocket)))
    spare=$((cores - POD_CPUS / $(hardware ThreadsPerCore)))
    ((spare > 0)) && printf ' CoreSpecCount=%s' "$spare"
  fi
  if [[ ${POD_MEMORY:-0} -gt 0 ]] && ! has "$1" MemSpecLimit; then
    spare=$(($(hardware RealMemory) - POD_MEMORY))
    ((spare > 0)) && printf ' MemSpecLimit=%s' "$spare"
  fi
}

# The value of --conf: the operator's pairs without an empty topology, plus topology and limits of the pod.
node_config() {
  local word pairs=""
  for word in $(unquoted "$1"); do
    # shellcheck disable=SC2016 # the literal name of the variable, which no shell has expanded
    case ${word,,} in
      topology= | 'topology=$slinky_topology' | 'topology=$pod_topology') ;;
      *) pairs+=" $word" ;;
    esac
  done
  has "$pairs" Topology || [[ -z $topology ]] || pairs+=" Topology=$topology"
  pairs+=$(reserved "$pairs")
  printf '%s' "${pairs# }"
}

# Sets options and config from the arguments. -D would prevent the supervision, and -b is added below.
read_arguments() {
  options=()
  config=
  while (($#)); do
    case $1 in
      -D | -b) ;;
      --conf) config+=" ${2:-}" && shift ;;
      --conf=*) config+=" ${1#--conf=}" ;;
      *) options+=("$(unquoted "$1")") ;;
    esac
    shift
  done
}

# A new container is like a rebooted machine: -b tells Slurm that all earlier jobs on this node have ended, and makes it
# accept what else slurmd reports. A slurmd that is only restarted must not use -b, or Slurm would give up its jobs.
boot=-b
start() { launch slurmd ${boot:+"$boot"} "${options[@]}" && boot=; }

died() {
  say "has ended; starting it again beside the running jobs"
  until start; do
    [[ -n $stopping ]] && return
    pause 1
  done
}

reloaded() { say "reconfigured"; }
tick() { :; }

mapfile -t words < <(xargs -r printf '%s\n' <<< "${SLURMD_OPTIONS:-}")
read_arguments "${words[@]}" "$@"
[[ " ${options[*]} " == *" -N"* ]] || options+=(-N "${SLURMD_NODENAME:-$(hostname)}")
config=$(set -f && node_config "$config")
[[ -z $config ]] || options+=(--conf "$config")

mkdir -p /run/slurm /var/spool/slurmd /var/log/slurm
say "options: ${options[*]}"
start || died
supervise
