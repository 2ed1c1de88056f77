# shellcheck shell=bash disable=SC2153
# Keeps one Slurm daemon running in a container; sourced by the entry points, which set NAME.
#
# The daemon runs in the background: it then tries a new configuration in a child process, and continues with the old
# one if the new one is bad. With -D it would replace itself and exit. After a successful reconfigure the daemon is
# another process, so its pid is looked up again. This shell is PID 1, so it becomes the parent of these processes.

pid=
stopping=
exec {never}<> <(:)

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }

# Waits on a pipe that nobody writes to; sleep would need a process.
pause() { read -r -t "$1" -u "$never" || true; }

alive() { [[ -n $pid ]] && kill -0 "$pid" 2> /dev/null; }

# Sets pid to the main process of the daemon: a child of this shell with its name. Debian's binaries end in -wlm.
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

# Waits for the new process, which may appear shortly after the old one has exited.
follow() {
  local left=10
  until find_daemon; do
    ((left-- > 0)) || return 1
    pause 0.1
  done
}

# Runs the daemon's command until it is in the background; a TERM meanwhile is passed on.
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

# slurmctld saves its state on TERM: wait until it has exited, or Kubernetes kills the container.
stop_daemon() {
  alive && kill -TERM "$pid"
  while alive; do pause 0.1; done
  pid=
}

# Calls `died` when the daemon has exited, `reloaded` when another process has taken over, `tick` four times a second.
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
