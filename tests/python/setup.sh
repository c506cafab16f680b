#!/usr/bin/env bash
# Installs what the tests of the Python package and of the examples for agent frameworks use. Does nothing when it is already there.
# Two environments: PydanticAI wants the newer MCP SDK, the others the older one.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(cd ../.. && pwd)/target/python

main() {
  if ! command -v python3 >/dev/null; then
    echo "Python 3.11 or newer is needed for the tests of the Python package, and \`python3\` is not on the PATH" >&2
    exit 1
  fi
  environment venv pydantic_ai/requirements.txt
  environment frameworks frameworks/requirements.txt
}

environment() {
  local venv=$folder/$1 wanted=$2
  if cmp --silent "$wanted" "$venv/installed.txt"; then return; fi
  echo "installing what is in tests/python/$wanted" >&2
  rm -rf "$venv"
  mkdir -p "$folder"
  if ! python3 -m venv "$venv" >&2; then
    echo "python3 cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2
    exit 1
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --requirement "$wanted" >&2
  cp "$wanted" "$venv/installed.txt"
}

main
