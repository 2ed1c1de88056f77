#!/bin/bash
# Starts slurmdbd as soon as its database accepts connections: by itself it would look only every five seconds.
#
# After a while it is started anyway, and says in its own words what is wrong.
set -u
patience=20 # seconds
conf=${SLURM_ETC:-/etc/slurm}/slurmdbd.conf
exec {never}<> <(:)
trap 'exit 0' TERM INT

# Waiting on a pipe that never speaks costs no process, unlike sleep.
pause() { read -r -t "$1" -u "$never" || true; }

# The value of a key in slurmdbd.conf; the last one counts.
setting() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\([^[:space:]#]*\).*/\1/Ip" "$conf" | tail -n 1; }

# shellcheck disable=SC2016 # the inner shell expands them
answers() { timeout 2 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "$1" "$2" 2> /dev/null; }

host=$(setting StorageHost)
port=$(setting StoragePort)
if [[ -n $host && $host != unix:* && $host != /* ]]; then
  until answers "$host" "${port:-3306}" || ((SECONDS >= patience)); do pause 0.2; done
fi
# slurmdbd is not the first process, because as such it would be deaf to TERM for as long as it waits for the database.
exec tini -g -- slurmdbd -D "$@"
