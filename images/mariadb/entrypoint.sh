#!/bin/bash
# Starts MariaDB with the container's arguments, on a data directory that is made when it is empty.
#
# One database and one user are kept as the environment says; a changed password file is followed while running.
set -u
data=/var/lib/mysql
socket=/run/mysqld/mysqld.sock
stopping=
exec {never}<> <(:)

say() { printf 'mariadb: %s\n' "$*" >&2; }
pause() { read -r -t "$1" -u "$never" || true; }

password() { cat "${MARIADB_PASSWORD_FILE:-/dev/null}"; }

# A text as an SQL string.
quoted() {
  local text=${1//\\/\\\\}
  printf "'%s'" "${text//\'/\'\'}"
}

# A name inside backquotes.
name() { printf '`%s`' "${1//\`/\`\`}"; }

grant() {
  local user secret
  user="$(quoted "${MARIADB_USER:-slurm}")@'%'"
  secret=$(quoted "$1")
  mariadb --no-defaults --user=mysql --socket="$socket" << SQL
CREATE DATABASE IF NOT EXISTS $(name "${MARIADB_DATABASE:-slurm_acct_db}");
CREATE USER IF NOT EXISTS $user IDENTIFIED BY $secret;
ALTER USER $user IDENTIFIED BY $secret;
GRANT ALL ON $(name "${MARIADB_DATABASE:-slurm_acct_db}").* TO $user;
SQL
}

if [[ ! -d $data/mysql ]]; then
  say "making a new data directory"
  # The directory may be a volume with a file system's own folder in it; "mysql" is also the one user with all rights.
  mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=socket \
    --auth-root-socket-user=mysql --skip-test-db > /dev/null || { say "cannot write to $data"; exit 1; }
fi

mkdir -p "${socket%/*}"
trap 'stopping=yes; kill -TERM "$server" 2> /dev/null' TERM INT
mariadbd --no-defaults --datadir="$data" --socket="$socket" --pid-file=/run/mysqld/mysqld.pid \
  --skip-name-resolve --bind-address=0.0.0.0 "$@" &
server=$!

granted=
while kill -0 "$server" 2> /dev/null; do
  if [[ -z $stopping ]]; then
    wanted=$(password)
    if [[ -S $socket && -n $wanted && $wanted != "$granted" ]] && grant "$wanted" 2> /dev/null; then
      say "user ${MARIADB_USER:-slurm} has the password of the file"
      granted=$wanted
    fi
  fi
  if [[ -n $granted ]]; then pause 2; else pause 0.2; fi
done
wait "$server"
