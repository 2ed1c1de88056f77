#!/bin/sh
# Prints what a daemon writes into its log file, which is a named pipe.
# `cat` runs in the background because a shell handles a signal only between foreground commands: otherwise the sidecar
# would use up the whole termination grace period while the pipe is idle.
trap 'exit 0' TERM
trap 'exit 1' INT HUP
mkdir -p "$(dirname "$SOCKET")"
if ! [ -p "$SOCKET" ]; then
  rm -f "$SOCKET"
  mkfifo -m 777 "$SOCKET"
fi
while :; do
  cat "$SOCKET" &
  wait $!
done
