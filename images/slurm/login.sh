#!/bin/bash
# Runs what a login machine needs: sackd, which authenticates users to Slurm; sshd; and sssd, which knows the users.
#
# Each is started again when it ends; the container lives as long as this script, and so do ssh connections of users.
set -u
stopping=
exec {never}<> <(:)

say() { printf 'login: %s\n' "$*" >&2; }
pause() { read -r -t "$1" -u "$never" || true; }

# keep NAME COMMAND...: runs the command for ever, a second apart at the least.
keep() {
  local name=$1 child=
  shift
  trap 'stopping=yes; [[ -z $child ]] || kill -TERM "$child" 2> /dev/null' TERM
  while [[ -z $stopping ]]; do
    "$@" &
    child=$!
    wait "$child"
    [[ -n $stopping ]] && break
    say "$name has ended (code $?); starting it again"
    pause 1
  done
  wait
}

# Whoever reads the log shall see within a minute and a half whether the directory answers, however chatty sshd is.
watch_directory() {
  local domain state told=
  trap 'exit 0' TERM
  while :; do
    pause 15
    for domain in $(sssctl domain-list 2> /dev/null); do
      state=$(sssctl domain-status --online "$domain" 2> /dev/null)
      if [[ $state == *Offline* ]]; then
        say "directory: the servers of sssd domain $domain do not answer"
        told=yes
      elif [[ -n $told && $state == *Online* ]]; then
        say "directory: the servers of sssd domain $domain answer again"
        told=
      fi
    done
  done
}

options() { xargs -r printf '%s\n' <<< "$1"; }

mkdir -p /run/sshd /run/slurm /run/dbus /var/lib/sss/{db,pipes/private,mc,pubconf,secrets,gpo_cache,keytabs} /var/log/sssd
chown slurm:slurm /run/slurm
rm -f /run/sssd.pid /run/slurm/sack.socket
ssh-keygen -A > /dev/null # only makes those that are not mounted

mapfile -t sackd < <(options "${SACKD_OPTIONS:-} $*")
mapfile -t sshd < <(options "${SSHD_OPTIONS:-}")
mapfile -t sssd < <(options "${SSSD_OPTIONS:-}")
keep sackd setpriv --reuid slurm --regid slurm --init-groups sackd -D "${sackd[@]}" &
keep sshd /usr/sbin/sshd -D -e "${sshd[@]}" &
if [[ -s /etc/sssd/sssd.conf ]]; then
  keep sssd /usr/sbin/sssd -i --logger=stderr "${sssd[@]}" &
  watch_directory &
fi
trap 'stopping=yes; kill -TERM $(jobs -p) 2> /dev/null' TERM INT
while [[ -z $stopping ]]; do wait; done
wait
