#!/bin/sh
# Writes what compose.yaml needs: a password for the database, and the worker's memory limit.
# Existing values are kept, so the script can be run again.
set -eu
umask 077
cd "$(dirname "$0")"

mkdir -p secrets  # only its owner may enter it; the files in it are readable by the containers' users
[ -s secrets/postgres_password ] ||
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >secrets/postgres_password
printf 'postgresql://podium:%s@database/podium' "$(cat secrets/postgres_password)" >secrets/database_url
chmod 644 secrets/postgres_password secrets/database_url

touch .env
grep -q '^PODIUM_WORKER_MEMORY=' .env ||
    awk '/^MemTotal:/ {printf "PODIUM_WORKER_MEMORY=%dm\n", $2 * 0.9 / 1024}' /proc/meminfo >>.env
