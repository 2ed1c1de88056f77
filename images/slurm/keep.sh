# shellcheck shell=bash
# Runs several daemons in one container and restarts each when it exits; sourced by the entry points, which set NAME.

stopping=
exec {never}<> <(:)

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }

# Waits on a pipe that nobody writes to; sleep would need a process.
pause() { read -r -t "$1" -u "$never" || true; }

# Splits an options variable into words; quotes group words, nothing is evaluated.
options() { xargs -r printf '%s\n' <<< "$1"; }

# keep DAEMON COMMAND...: runs the command again whenever it exits, after a pause of one second.
keep() {
  local daemon=$1 child='' status
  shift
  trap 'stopping=yes; [[ -z $child ]] || kill -TERM "$child" 2> /dev/null' TERM
  while [[ -z $stopping ]]; do
    "$@" &
    child=$!
    wait "$child"
    status=$?
    [[ -n $stopping ]] && break
    say "$daemon has ended (code $status); starting it again"
    pause 1
  done
  wait
}

keep_sshd() {
  local words
  mkdir -p /run/sshd
  ssh-keygen -A > /dev/null # generates only host keys that are not mounted
  mapfile -t words < <(options "${SSHD_OPTIONS:-}")
  keep sshd /usr/sbin/sshd -D -e "${words[@]}"
}

keep_sssd() {
  local words
  mkdir -p /run/dbus /var/lib/sss/{db,pipes/private,mc,pubconf,secrets,gpo_cache,keytabs} /var/log/sssd
  rm -f /run/sssd.pid
  mapfile -t words < <(options "${SSSD_OPTIONS:-}")
  keep sssd /usr/sbin/sssd -i --logger=stderr "${words[@]}"
}
