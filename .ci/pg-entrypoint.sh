#!/bin/bash
# Stand-in for the postgres image's docker-entrypoint.sh: same variables, same paths.
set -eu
file_env() { local f="${1}_FILE"; if [ -n "${!f:-}" ]; then export "$1"="$(cat "${!f}")"; fi; }
[ "${1:-}" ] && [ "${1#-}" != "$1" ] && set -- postgres "$@"
if [ "${1:-}" = postgres ] && [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chown -R postgres:postgres "$PGDATA" /var/run/postgresql; chmod 700 "$PGDATA"; chmod 3777 /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "${BASH_SOURCE[0]}" "$@"
fi
if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  file_env POSTGRES_PASSWORD; file_env POSTGRES_USER; file_env POSTGRES_DB
  : "${POSTGRES_USER:=postgres}"; : "${POSTGRES_DB:=$POSTGRES_USER}"
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
    echo 'Error: Database is uninitialized and superuser password is not specified.' >&2; exit 1
  fi
  initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:-}") ${POSTGRES_INITDB_ARGS:-} -D "$PGDATA"
  printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"
  printf "listen_addresses = '*'\nunix_socket_directories = '/var/run/postgresql,/tmp'\n" >> "$PGDATA/postgresql.conf"
  pg_ctl -D "$PGDATA" -w -o "-c listen_addresses=''" start
  export PGPASSWORD="${POSTGRES_PASSWORD:-}"
  [ "$POSTGRES_DB" = postgres ] || psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d postgres --set db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
  for f in /docker-entrypoint-initdb.d/*; do
    case "$f" in
      *.sh) if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
      *.sql) psql -v ON_ERROR_STOP=1 --no-psqlrc -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f "$f" ;;
      *.sql.gz) gunzip -c "$f" | psql -v ON_ERROR_STOP=1 --no-psqlrc -U "$POSTGRES_USER" -d "$POSTGRES_DB" ;;
    esac
  done
  unset PGPASSWORD
  pg_ctl -D "$PGDATA" -m fast -w stop
  echo; echo 'PostgreSQL init process complete; ready for start up.'; echo
fi
exec "$@"
