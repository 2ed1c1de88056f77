#!/bin/bash
# Starts slurmdbd as soon as its database accepts connections; slurmdbd itself tries only every five seconds.
#
# After a timeout it is started anyway, and logs what is wrong.
set -u
patience=20 # seconds
conf=${SLURM_ETC:-/etc/slurm}/slurmdbd.conf
exec {never}<> <(:)
trap 'exit 0' TERM INT

# Waits on a pipe that nobody writes to; sleep would need a process.
pause() { read -r -t "$1" -u "$never" || true; }

# The value of a key in slurmdbd.conf; the last line wins.
setting() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\([^[:space:]#]*\).*/\1/Ip" "$conf" | tail -n 1; }

# shellcheck disable=SC2016 # the inner shell expands them
answers() { timeout 2 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "$1" "$2" 2> /dev/null; }

host=$(setting StorageHost)
port=$(setting StoragePort)
if [[ -n $host && $host != unix:* && $host != /* ]]; then
  until answers "$host" "${port:-3306}" || ((SECONDS >= patience)); do pause 0.2; done
fi
# slurmdbd must not be PID 1: as such it would ignore TERM while it waits for the database.
exec tini -g -- slurmdbd -D "$@"
