#!/usr/bin/env bash
# Installs the MCP and A2A SDKs that the client drivers use, what checks our types, the conformance suite, and servers that are
# widely used. Does nothing when they are already there.
set -euo pipefail
cd "$(dirname "$0")"
clients=$PWD
installed=$(cd ../.. && pwd)/target

main() {
  require node 'Node.js 20 or newer'
  require npm 'npm'
  require python3 'Python 3.11 or newer'
  python_sdk requirements.txt clients/venv
  python_sdk a2a.txt clients/a2a
  # An agent that is a client of tools itself needs both SDKs.
  python_sdk clerk.txt clerk
  npm_sdk typescript
  npm_sdk typescript-v1
  npm_sdk types
  npm_sdk ../conformance
  npm_sdk ../servers
  newer_node
}

# The suite and the inspector need Node.js 22. Where there is an older one, a newer is put beside it for them alone.
newer_node() {
  if [ "$(node --print 'process.versions.node.split(".")[0]')" -lt 22 ]; then npm_sdk ../node; fi
}

# What one file asks for, in an environment of its own.
python_sdk() {
  local wanted=$clients/python/$1 venv=$installed/$2
  local stamp=$venv/installed.txt
  if cmp --silent "$wanted" "$stamp"; then return; fi
  echo "installing what is in tests/clients/python/$1" >&2
  rm -rf "$venv"
  mkdir -p "$(dirname "$venv")"
  if ! python3 -m venv "$venv" >&2; then
    echo "python3 cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2
    exit 1
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --requirement "$wanted" >&2
  cp "$wanted" "$stamp"
}

npm_sdk() {
  local folder=$clients/$1
  local wanted=$folder/package-lock.json stamp=$folder/node_modules/.installed.json
  if cmp --silent "$wanted" "$stamp"; then return; fi
  echo "installing what is in tests/clients/$1" >&2
  (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2)
  cp "$wanted" "$stamp"
}

require() {
  if ! command -v "$1" >/dev/null; then
    echo "$2 is needed for the client drivers, and \`$1\` is not on the PATH" >&2
    exit 1
  fi
}

main
