#!/bin/sh
# Tests an operator's steps with the real images: build, start, publish, submit, back up, restore.
#
#   docker/try.sh                        with the installed Docker
#   docker/engine.sh docker/try.sh       with a temporary one, if none is installed
#
# WORKER=0 leaves out the worker, whose image has many gigabytes. The script publishes no port, and
# removes what it created.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
cat >"$work/alone.yaml" <<'E'
services:
  proxy:
    ports: !reset []
E
compose() {
    docker compose --project-name podium-try --file docker/compose.yaml --file docker/compose.cpu.yaml \
        --file "$work/alone.yaml" --profile web "$@"
}
say() { echo "== $*"; }
ended() {
    status=$?
    [ $status = 0 ] || compose logs --tail 50 || true
    compose down --volumes >/dev/null 2>&1 || true
    rm -r "$work"
    [ $status = 0 ] && say "all steps succeeded"
}
trap ended EXIT
sh docker/setup.sh
services="database bot proxy"
[ "${WORKER:-1}" = 0 ] || services="$services worker"

say "build"
compose config --quiet
compose build --quiet bot
[ "${WORKER:-1}" = 0 ] || compose build --quiet worker
say "start"
compose up --detach --wait --wait-timeout 300 $services
compose exec -T bot podium --version
compose exec -T bot podium doctor
compose ps

say "no secret is shown, no default home files are in /data"
password=$(cat docker/secrets/postgres_password)
docker inspect podium-try-bot-1 podium-try-database-1 >"$work/inspected"
if grep -F "$password" "$work/inspected"; then exit 1; fi
compose exec -T bot sh -c 'ls -A /data' >"$work/data"
if grep '^\.' "$work/data"; then exit 1; fi

say "the pages, over HTTPS through the proxy"
# The proxy's certificate for `localhost` is self-signed, so this request does not verify it.
compose exec -T bot python - <<'E'
import socket, ssl, time
for attempt in range(100):
    try:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("proxy", 443), 5) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as line:
                line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = line.recv(1000).decode()
        if " 200 " in answer.splitlines()[0]:
            break
    except OSError as error:
        answer = str(error)
    time.sleep(0.1)
else:
    raise SystemExit(answer)
print(answer.splitlines()[0])
E

if [ "${WORKER:-1}" != 0 ]; then
    say "publish and submit"
    compose exec -T worker podium doctor
    compose exec -T worker podium task publish /tasks/examples/identity
    compose exec -T bot podium submit - --leaderboard identity --mode test --as ada \
        <tasks/examples/identity/solutions/correct/torch_copy.py
fi

say "back up, lose everything, restore"
compose exec -T bot podium backup - >"$work/podium.backup"
[ "${WORKER:-1}" = 0 ] || compose exec -T bot podium show 1 >"$work/before"
compose down --volumes
compose up --detach --wait database
compose run --rm -T bot podium restore - <"$work/podium.backup"
compose up --detach --wait --wait-timeout 300 $services
[ "${WORKER:-1}" = 0 ] || {
    compose exec -T bot podium show 1 >"$work/after"
    diff "$work/before" "$work/after"
}
