# shellcheck shell=bash disable=SC2153
# Keeps one Slurm daemon running in a container; sourced by the entry points, which set NAME.
#
# The daemon runs detached. Only then does it try a new configuration in a child process and carry on with the old one
# when the new one is bad; with -D it replaces itself and dies. A reconfigure that works ends in another process, so the
# daemon is followed from process to process. As the container's first process this shell inherits it each time.

pid=
stopping=
exec {never}<> <(:)

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }

# Waiting on a pipe that never speaks costs no process, unlike sleep.
pause() { read -r -t "$1" -u "$never" || true; }

alive() { [[ -n $pid ]] && kill -0 "$pid" 2> /dev/null; }

# Sets pid to the daemon's main process: the one of its name whose parent is gone. Debian's binaries end in -wlm.
find_daemon() {
  local file line name fields
  for file in /proc/[0-9]*/stat; do
    { read -r line < "$file"; } 2> /dev/null || continue
    name=${line#*\(} && name=${name%\)*}
    [[ $name == "$NAME" || $name == "$NAME-wlm" ]] || continue
    read -r -a fields <<< "${line##*\) }"
    [[ ${fields[0]} != Z && (${fields[1]} == 1 || ${fields[1]} == "$$") ]] || continue
    pid=${line%% *}
    return 0
  done
  return 1
}

# The new process shows up a moment before or after the old one has gone.
follow() {
  local left=10
  until find_daemon; do
    ((left-- > 0)) || return 1
    pause 0.1
  done
}

# Runs the daemon's command until it has detached; a TERM in the meantime is not lost.
launch() {
  local command status=0
  "$@" &
  command=$!
  while kill -0 "$command" 2> /dev/null; do
    wait "$command" && status=0 || status=$?
    [[ -n $stopping ]] && kill -TERM "$command" 2> /dev/null
  done
  [[ $status == 0 ]] && follow
}

# slurmctld writes its state on TERM: wait for it as long as Kubernetes lets us.
stop_daemon() {
  alive && kill -TERM "$pid"
  while alive; do pause 0.1; done
  pid=
}

# Calls `died` when the daemon is gone, `reloaded` when another process took over, `tick` four times a second.
supervise() {
  while [[ -z $stopping ]]; do
    pause 0.25
    [[ -n $stopping ]] && break
    if alive; then tick; elif follow; then reloaded; else died; fi
  done
  say "stopping"
  stop_daemon
  exit 0
}

trap 'stopping=yes' TERM INT
