#!/bin/bash
# Runs the daemons of a login node: sackd, which authenticates users to Slurm; sshd; and sssd, which looks up users.
#
# Each is restarted when it exits. The container and the ssh connections of users last as long as this script.
set -u
NAME=login
. "${KUBESLURM_LIB:-/usr/local/lib/kubeslurm}/keep.sh"

# Prints DOMAIN HOST PORT for every server in sssd.conf, without those that sssd finds by DNS.
servers() {
  local line domain='' url host port
  while read -r line; do
    if [[ $line =~ ^\[domain/(.+)\] ]]; then
      domain=${BASH_REMATCH[1]}
    elif [[ $line == \[* ]]; then
      domain=
    elif [[ -n $domain && $line =~ ^(ldap_uri|ad_server|ipa_server)[[:space:]]*=(.*)$ ]]; then
      for url in ${BASH_REMATCH[2]//,/ }; do
        port=389
        [[ $url == ldaps://* ]] && port=636
        host=${url#*://}
        host=${host%%/*}
        [[ $host == *:* ]] && port=${host##*:} && host=${host%:*}
        [[ $host == _srv_ ]] || printf '%s %s %s\n' "$domain" "$host" "$port"
      done
    fi
  done < /etc/sssd/sssd.conf
}

# shellcheck disable=SC2016 # the inner shell expands them
answers() { timeout 3 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "$1" "$2" 2> /dev/null; }

# Logs every five seconds while no server of a domain answers. The operator sets a condition from these lines.
watch_directory() {
  local domain host port
  local -A away told
  trap 'exit 0' TERM
  while :; do
    away=()
    while read -r domain host port; do
      [[ ${away[$domain]:-} == no ]] && continue
      if answers "$host" "$port"; then away[$domain]=no; else away[$domain]=yes; fi
    done < <(servers)
    for domain in "${!away[@]}"; do
      if [[ ${away[$domain]} == yes ]]; then
        say "directory: the servers of sssd domain $domain do not answer"
        told[$domain]=yes
      elif [[ -n ${told[$domain]:-} ]]; then
        say "directory: the servers of sssd domain $domain answer again"
        unset "told[$domain]"
      fi
    done
    pause 5
  done
}

mkdir -p /run/slurm
chown slurm:slurm /run/slurm
rm -f /run/slurm/sack.socket

mapfile -t words < <(options "${SACKD_OPTIONS:-} $*")
keep sackd setpriv --reuid slurm --regid slurm --init-groups sackd -D "${words[@]}" &
keep_sshd &
if [[ -s /etc/sssd/sssd.conf ]]; then
  keep_sssd &
  watch_directory &
fi
trap 'stopping=yes; kill -TERM $(jobs -p) 2> /dev/null' TERM INT
while [[ -z $stopping ]]; do wait; done
wait
