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

# SQL that makes the database and its user, with this password, one statement to a line.
wishes() {
  local user secret
  user="$(quoted "${MARIADB_USER:-slurm}")@'%'"
  secret=$(quoted "$1")
  cat << SQL
CREATE DATABASE IF NOT EXISTS $(name "${MARIADB_DATABASE:-slurm_acct_db}");
CREATE USER IF NOT EXISTS $user IDENTIFIED BY $secret;
ALTER USER $user IDENTIFIED BY $secret;
GRANT ALL ON $(name "${MARIADB_DATABASE:-slurm_acct_db}").* TO $user;
SQL
}

administer() { mariadb --no-defaults --user=mysql --socket="$socket"; }

# A directory whose making was cut short is made again; it may be a volume with a file system's own folder in it.
if [[ -e $data/.making ]]; then
  find "$data" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +
fi
if [[ ! -d $data/mysql ]]; then
  say "making a new data directory"
  # "mysql" is also the one user with all rights.
  touch "$data/.making"
  mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=socket \
    --auth-root-socket-user=mysql --skip-test-db > /dev/null || { say "cannot write to $data"; exit 1; }
  rm "$data/.making"
fi

# The server carries this out before it listens: whoever reaches it finds the user there.
mkdir -p "${socket%/*}"
first=${socket%/*}/first.sql
granted=$(password)
(umask 077 && if [[ -n $granted ]]; then wishes "$granted"; fi > "$first")
trap 'stopping=yes; kill -TERM "$server" 2> /dev/null' TERM INT
mariadbd --no-defaults --datadir="$data" --socket="$socket" --pid-file=/run/mysqld/mysqld.pid \
  --init-file="$first" --skip-name-resolve --bind-address=0.0.0.0 "$@" &
server=$!

while kill -0 "$server" 2> /dev/null; do
  if [[ -z $stopping ]]; then
    wanted=$(password)
    if [[ -S $socket && -n $wanted && $wanted != "$granted" ]] && wishes "$wanted" | administer 2> /dev/null; then
      say "user ${MARIADB_USER:-slurm} has the password of the file"
      granted=$wanted
    fi
  fi
  pause 1
done
wait "$server"
