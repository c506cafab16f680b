#!/usr/bin/env bash
# Installs the gateways that the bench compares with, each in a folder of its own: bench/gateways/setup.sh [FOLDER]
set -euo pipefail

FASTMCP_VERSION=4.1.2
CTRLRUN_VERSION=0.12.2
THEODOSIA_VERSION=0.9.0

folder=${1:-"$(dirname "$0")/../../target/bench-gateways"}

# The last line of a finished installation names its version, so that another one is installed anew.
install() {
  local name=$1 package=$2 place="$folder/$1"
  if [ "$(cat "$place/installed" 2>/dev/null)" = "$package" ]; then
    echo "$package is there"
    return
  fi
  rm -rf "$place"
  python3 -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check "$package"
  echo "$package" >"$place/installed"
  echo "$package installed"
}

# Its own folder, so that nothing of ours is built with its features.
build() {
  cargo install --quiet --locked --path "$(dirname "$0")/rmcp_proxy" --root "$folder/rmcp" --target-dir "$folder/rmcp/target"
  echo "the proxy of the Rust SDK is there"
}

mkdir -p "$folder"
build
install fastmcp "fastmcp==$FASTMCP_VERSION"
install ctrlrun "ctrlrun[gateway]==$CTRLRUN_VERSION"
install theodosia "theodosia==$THEODOSIA_VERSION"
