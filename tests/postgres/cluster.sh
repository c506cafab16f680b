#!/usr/bin/env bash
# A PostgreSQL for tests, in a folder of its own, reached by a socket in it. Its data is on the disk as in earnest (fsync).
#   cluster.sh start FOLDER          makes the folder and a cluster in it where there is none, starts it, prints its address
#   cluster.sh stop FOLDER [MODE]    stops it: fast, or immediate as in a crash
#   cluster.sh hold FOLDER           starts it, prints its address, and stops and removes it when its standard input ends
# With TLS_PORT it also listens on that port of 127.0.0.1, over TLS with the certificate TLS_CERTIFICATE and its key TLS_KEY.
set -euo pipefail

main() {
  folder=$2
  find_programs
  case $1 in
    start) start "$folder" ;;
    stop) stop "$folder" "${3:-fast}" ;;
    hold)
      trap 'stop "$folder" immediate; rm -rf "$folder"' EXIT
      start "$folder"
      cat >/dev/null
      ;;
    *)
      echo "usage: cluster.sh start|stop|hold FOLDER" >&2
      exit 2
      ;;
  esac
}

find_programs() {
  bin=$(find_bin)
  if [ -z "$bin" ]; then
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    "${root[@]}" apt-get update --quiet=2 >&2
    "${root[@]}" apt-get install --quiet=2 --yes postgresql >&2
    bin=$(find_bin)
  fi
}

find_bin() {
  if command -v initdb >/dev/null && command -v pg_ctl >/dev/null; then
    dirname "$(readlink -f "$(command -v initdb)")"
  else
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true
  fi
}

# PostgreSQL refuses to run as root.
run() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && exec runuser -u postgres -- "$@")
  else
    "$@"
  fi
}

start() {
  local folder=$1
  if [ ! -d "$folder/data" ]; then
    mkdir -p "$folder"
    if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
    run "$bin/initdb" --pgdata "$folder/data" --username postgres --auth trust --encoding UTF8 --no-sync >&2
  fi
  local options="-c unix_socket_directories='$folder' -c max_connections=200"
  if [ -n "${TLS_PORT:-}" ]; then
    local owner=()
    if [ "$(id -u)" = 0 ]; then owner=(-o postgres); fi
    install "${owner[@]}" -m 600 "$TLS_CERTIFICATE" "$folder/tls.crt"
    install "${owner[@]}" -m 600 "$TLS_KEY" "$folder/tls.key"
    options+=" -c listen_addresses=127.0.0.1 -c port=$TLS_PORT -c ssl=on"
    options+=" -c ssl_cert_file='$folder/tls.crt' -c ssl_key_file='$folder/tls.key'"
  else
    options+=" -c listen_addresses=''"
  fi
  run "$bin/pg_ctl" start --pgdata "$folder/data" --log "$folder/log" --wait --silent --options "$options" >&2
  echo "postgres:///postgres?user=postgres&host=$folder"
}

stop() {
  run "$bin/pg_ctl" stop --pgdata "$1/data" --mode "$2" --wait --silent >&2 || true
}

main "$@"
