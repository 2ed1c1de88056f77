#!/bin/bash
# Starts MariaDB with the container's arguments, and creates the data directory if it is empty.
#
# Keeps one database and one user as the environment specifies; a change of the password file is applied while it runs.
set -u
data=/var/lib/mysql
socket=/run/mysqld/mysqld.sock
stopping=
exec {never}<> <(:)

say() { printf 'mariadb: %s\n' "$*" >&2; }
pause() { read -r -t "$1" -u "$never" || true; }

password() { cat "${MARIADB_PASSWORD_FILE:-/dev/null}"; }

# Quotes a text as an SQL string.
quoted() {
  local text=${1//\\/\\\\}
  printf "'%s'" "${text//\'/\'\'}"
}

# Quotes an SQL identifier.
name() { printf '`%s`' "${1//\`/\`\`}"; }

# SQL that creates the database and its user with this password, one statement per line.
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

# If creating the directory was interrupted, start over. A volume may contain lost+found.
if [[ -e $data/.making ]]; then
  find "$data" -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +
fi
if [[ ! -d $data/mysql ]]; then
  say "creating a new data directory"
  # The system user mysql is also the database user with all rights.
  touch "$data/.making"
  mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=socket \
    --auth-root-socket-user=mysql --skip-test-db > /dev/null || { say "cannot write to $data"; exit 1; }
  rm "$data/.making"
fi

# The server runs this before it listens, so that the user exists for every client.
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
      say "changed the password of user ${MARIADB_USER:-slurm}"
      granted=$wanted
    fi
  fi
  pause 1
done
wait "$server"
