#!/bin/sh
# Runs a command with a temporary Docker engine and Compose: docker/engine.sh COMMAND...
#
# For a machine that has no engine and reaches no image registry. The engine and replacements for the
# public base images come from Debian's packages, and everything is removed at the end. This needs
# root, debootstrap and a kernel with overlayfs and NAT. The command runs in a copy of this checkout,
# without the digests of the images. If $WORK names a folder, the downloads are kept in it.
set -eu
[ $# -gt 0 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "docker/engine.sh: only root can mount and make networks" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "docker/engine.sh: no debootstrap here; apt install debootstrap" >&2; exit 2; }

CHECKOUT=$(cd "$(dirname "$0")/.." && pwd)
KEPT=${WORK:+yes}
WORK=$(realpath "${WORK:-$(mktemp -d)}")
mirrors='/^(deb |URIs:)/ {for (i = 2; i <= NF; i++) if ($i ~ /^http/) {print $i; exit}}'
MIRROR=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | awk "$mirrors")}
cd "$WORK"

# Debian's development branch: the stable one's engine is too old for the compose file.
if [ ! -f base.tar ]; then
    debootstrap --variant=minbase --include=ca-certificates sid root "$MIRROR" >debootstrap.log 2>&1
    printf '%s\n' 'Acquire::Check-Valid-Until "false";' 'Acquire::Check-Date "false";' \
        'APT::Install-Recommends "false";' >root/etc/apt/apt.conf.d/99mirror
    if cp /usr/local/share/ca-certificates/*.crt root/usr/local/share/ca-certificates/ 2>/dev/null; then
        chroot root update-ca-certificates >/dev/null 2>&1
    fi
    cp -L /etc/resolv.conf root/etc/resolv.conf
    rm -f root/var/cache/apt/archives/*.deb
    tar -C root -c . >base.tar.partial
    mv base.tar.partial base.tar
    printf '#!/bin/sh\nexit 101\n' >root/usr/sbin/policy-rc.d  # no package starts a service
    chmod +x root/usr/sbin/policy-rc.d
fi

rm -rf checkout
git clone -q "$CHECKOUT" checkout
(cd "$CHECKOUT" && git ls-files -mo --exclude-standard -z | xargs -0r cp --parents -t "$WORK/checkout")
sed -i 's/@sha256:[0-9a-f]*//' checkout/docker/*.Dockerfile checkout/docker/compose*.yaml
CHECKOUT="$WORK/checkout"

base() { sed -n "s#^ *\(FROM\|image:\) \($1:[^ ]*\).*#\2#p" "$CHECKOUT"/docker/*.Dockerfile "$CHECKOUT"/docker/compose.yaml | head -n 1; }
PYTHON_IMAGE=$(base python) POSTGRES_IMAGE=$(base postgres) PROXY_IMAGE=$(base caddy)
CUDA_IMAGE=$(base nvidia/cuda)

cat >inside.sh <<'EOS'
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive
export DOCKER_HOST="unix://$WORK/docker.sock"
command -v dockerd >/dev/null || {
    apt-get update -qq
    apt-get install -y -qq docker.io docker-cli docker-compose docker-buildx iptables curl openssl >"$WORK/apt.log" 2>&1
}
# At the end Docker's firewall rules are removed and the previous ones restored.
for rules in iptables ip6tables; do $rules-save >"$WORK/$rules.saved"; done
firewall_back() {
    for rules in iptables ip6tables; do
        for table in filter nat raw; do
            $rules -t $table -F && $rules -t $table -X
        done
        $rules -P FORWARD ACCEPT
        $rules-restore <"$WORK/$rules.saved"
    done
}
dockerd --data-root "$WORK/data" --exec-root "$WORK/exec" --pidfile "$WORK/docker.pid" \
    --host "$DOCKER_HOST" >"$WORK/dockerd.log" 2>&1 &
trap 'kill $(cat "$WORK/docker.pid"); wait || true; firewall_back' EXIT
tries=0
until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { tail -n 20 "$WORK/dockerd.log" >&2; exit 3; }
    sleep .2
done

# Replacements for the public images: the same programs at the same paths, in Debian's versions.
has() { docker image inspect "$1" >/dev/null 2>&1; }
has debian:here || docker import "$WORK/base.tar" debian:here >/dev/null
has "$CUDA_IMAGE" || docker tag debian:here "$CUDA_IMAGE"  # without CUDA's compilers
has "$PYTHON_IMAGE" || docker build -q -t "$PYTHON_IMAGE" - >/dev/null <<'D'
FROM debian:here
RUN apt-get update -qq && apt-get install -y -qq python3.13 python3-pip >/dev/null \
 && rm -rf /var/lib/apt/lists/* /usr/lib/python3*/EXTERNALLY-MANAGED \
 && ln -s /usr/bin/python3.13 /usr/local/bin/python \
 && printf '#!/bin/sh\nexec python3.13 -m pip "$@"\n' >/usr/local/bin/pip && chmod +x /usr/local/bin/pip
# pip cannot remove Debian's own packages.
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
RUN python -m pip install -q --ignore-installed pip packaging setuptools wheel 2>/dev/null
D
has "$POSTGRES_IMAGE" || docker build -q -t "$POSTGRES_IMAGE" - >/dev/null <<'D'
FROM debian:here
RUN apt-get update -qq && apt-get install -y -qq postgresql-18 gosu >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/*
COPY --chmod=755 <<'E' /usr/local/bin/docker-entrypoint.sh
#!/bin/sh
# Does the same with POSTGRES_* as the official image's entrypoint.
set -eu
[ -z "${POSTGRES_PASSWORD_FILE:-}" ] || { POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE"); export POSTGRES_PASSWORD; unset POSTGRES_PASSWORD_FILE; }
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres "$PGDATA" /var/lib/postgresql /var/run/postgresql
    chmod 700 "$PGDATA"
    exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" >/tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 >/dev/null
    rm /tmp/password
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start >/dev/null
    psql -U "$POSTGRES_USER" -d postgres -qc "create database \"$POSTGRES_DB\""
    pg_ctl -D "$PGDATA" -m fast -w stop >/dev/null
fi
exec "$@" -c listen_addresses='*'
E
ENV PATH=/usr/lib/postgresql/18/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PGDATA=/var/lib/postgresql/18/docker LANG=C.UTF-8
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
D
has "$PROXY_IMAGE" || docker build -q -t "$PROXY_IMAGE" - >/dev/null <<'D'
FROM debian:here
RUN apt-get update -qq && apt-get install -y -qq caddy >/dev/null && rm -rf /var/lib/apt/lists/*
ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
D
cd "$CHECKOUT"
"$@"
EOS

# The root must be changed with pivot_root, because after a plain chroot the engine would see the
# machine's files. What the engine leaves in the machine's network is removed at the end.
forward=$(cat /proc/sys/net/ipv4/ip_forward)
tidy() {
    ip link del docker0 2>/dev/null || true
    echo "$forward" >/proc/sys/net/ipv4/ip_forward
    [ -n "$KEPT" ] || rm -rf "$WORK"
}
trap tidy EXIT
export WORK CHECKOUT PYTHON_IMAGE POSTGRES_IMAGE PROXY_IMAGE CUDA_IMAGE
unshare --mount sh -ec '
mount --make-rprivate /
mount --bind root root
cd root
mkdir -p ".$WORK" .old
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount --bind "$WORK" ".$WORK"
pivot_root . .old
cd /
umount -l /.old
exec sh "$WORK/inside.sh" "$@"' sh "$@"
