#!/bin/bash
# Starts slurmctld with $SLURMCTLD_OPTIONS and the container's arguments, and keeps it running.
#
# The configuration is mounted read-only in /etc/slurm. A copy of the last one that worked is kept in StateSaveLocation;
# if slurmctld cannot start with the mounted one, it runs with the copy until the mounted one changes.
set -u
NAME=slurmctld
# shellcheck source=supervise.sh
. "${KUBESLURM_LIB:-/usr/local/lib/kubeslurm}/supervise.sh"

mounted=${SLURM_ETC:-/etc/slurm}
runtime=${SLURM_RUN:-/run}
spare=$runtime/slurmctld-last-good
refused= # digest of the mounted files that did not work, while the copy is in use

# The value of a key in the mounted slurm.conf; the last line wins.
setting() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\([^[:space:]#]*\).*/\1/Ip" "$mounted/slurm.conf" | tail -n 1; }

# A digest of the files in a directory, without keys: only the mounted keys are ever used.
digest() {
  local file
  for file in "$1"/*; do
    [[ $file == *.key || ! -f $file ]] || { echo "${file##*/}" && cksum < "$file"; }
  done
}

state=$(setting StateSaveLocation)
good=${state:-/var/spool/slurmctld}/last-good-config

remember() {
  rm -rf "$good.new" && mkdir -p "$good.new" || return 0
  local file
  for file in "$mounted"/*; do
    [[ $file == *.key || ! -f $file ]] || cp -L "$file" "$good.new/"
  done
  rm -rf "$good.old"
  [[ ! -d $good ]] || mv "$good" "$good.old"
  mv "$good.new" "$good" || true # a full disk must not stop a slurmctld that runs
}

# With accounting, a slurmctld that died before its first full save cannot start again without this file.
recovery() { [[ -e $state/clustername && ! -e $state/assoc_usage ]] && echo -i; }

start() {
  local recover
  recover=$(recovery)
  launch slurmctld -f "$1/slurm.conf" ${recover:+"$recover"} "${options[@]}" || return 1
  pause 1 # it reads some files only after it has gone to the background
  alive || { find_daemon && say "reconfigured"; } # somebody has reconfigured it already
}

bring_up() {
  local copy=$good tried
  refused=
  tried=$(digest "$mounted") # if the files change during the start, the new ones have not been tried
  start "$mounted" && remember && return 0
  [[ -d $copy ]] || copy=$good.old # the copying was interrupted between two renames
  [[ -z $stopping && -d $copy && $(digest "$copy") != "$tried" ]] || return 1
  say "cannot start with the files in $mounted; starting with the last ones that worked"
  refused=$tried
  rm -rf "$spare" && cp -R "$copy" "$spare" && ln -s "$mounted"/*.key "$spare/" && start "$spare"
}

# Some causes are temporary: a name that does not resolve yet, a database that is starting.
bring_up_or_exit() {
  bring_up || { pause 1 && bring_up; } || [[ -n $stopping ]] && return
  say "cannot start; see the messages above and the log file"
  exit 1
}

died() {
  say "has ended; starting it again"
  bring_up_or_exit
}

reloaded() {
  say "reconfigured"
  [[ -n $refused ]] || remember
}

tick() {
  [[ -n $refused && $(digest "$mounted") != "$refused" ]] || return 0
  say "the files in $mounted have changed; trying them"
  stop_daemon
  bring_up_or_exit
}

mkdir -p "$runtime/slurmctld"
mapfile -t options < <(xargs -r printf '%s\n' <<< "${SLURMCTLD_OPTIONS:-}")
for word in "$@"; do
  [[ $word == -D ]] || options+=("$word")
done
bring_up_or_exit
supervise
