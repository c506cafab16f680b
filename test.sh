#!/usr/bin/env bash
# Checks everything: ./test.sh
# Formatting, lints and tests only: ./test.sh quick
# The gateway killed a hundred times under load: ./test.sh long
set -euo pipefail
cd "$(dirname "$0")"

NEXTEST_VERSION=0.9.143
DENY_VERSION=0.20.2

# One set of compiler flags for all steps, or each step would build the dependencies again.
unset RUSTFLAGS
export CARGO_TERM_PROGRESS_WHEN=never

main() {
  case "${1:-all}" in
    all) all ;;
    quick) quick ;;
    long) long ;;
    *)
      echo "usage: ./test.sh [quick|long]" >&2
      exit 2
      ;;
  esac
  echo "== all passed, $SECONDS s"
}

# The steps that compile nothing come first. Lints and docs share what they check, doc tests and tests what they build.
# The tests come last, so that their count is the last thing said.
all() {
  step "tools" install_tools nextest deny
  step "clients" tests/clients/setup.sh
  step "console" tests/console/setup.sh
  step "ag-ui" tests/agui/setup.sh
  step "python" tests/python/setup.sh
  step "format" cargo fmt --all --check -- --color "${CARGO_TERM_COLOR:-auto}"
  step "fetch" cargo fetch --locked
  step "dependencies" cargo deny --offline --log-level error check --hide-inclusion-graph bans licenses sources
  step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
  step "docs" env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --locked
  step "doc tests" cargo test --doc --workspace --locked --quiet
  step "postgres" start_postgres
  step "tests" cargo nextest run --workspace --locked --profile ci
}

quick() {
  step "tools" install_tools nextest
  step "clients" tests/clients/setup.sh
  step "console" tests/console/setup.sh
  step "ag-ui" tests/agui/setup.sh
  step "python" tests/python/setup.sh
  step "format" cargo fmt --all --check -- --color "${CARGO_TERM_COLOR:-auto}"
  step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
  step "postgres" start_postgres
  step "tests" cargo nextest run --workspace --locked --profile ci
}

long() {
  step "tools" install_tools nextest
  step "clients" tests/clients/setup.sh
  step "crashes" env AMENDS_CRASH_ROUNDS=100 cargo nextest run --workspace --test faults --locked --profile long -E 'test(/load::/)'
}

install_tools() {
  for tool in "$@"; do
    if cargo "$tool" --version >/dev/null 2>&1; then continue; fi
    case $tool in
      nextest) cargo install cargo-nextest --locked --version "$NEXTEST_VERSION" ;;
      deny) cargo install cargo-deny --locked --version "$DENY_VERSION" ;;
    esac
  done
}

# One for all tests, each of which makes a database of its own in it.
start_postgres() {
  postgres=$(mktemp -d)
  chmod 755 "$postgres"
  AMENDS_TEST_POSTGRES=$(tests/postgres/cluster.sh start "$postgres/cluster")
  export AMENDS_TEST_POSTGRES
}

stop_postgres() {
  if [ -n "${postgres:-}" ]; then
    tests/postgres/cluster.sh stop "$postgres/cluster" immediate
    rm -rf "$postgres"
  fi
}

step() {
  step_name=$1
  step_started=$SECONDS
  shift
  echo "== $step_name"
  "$@" </dev/null
  echo "== $step_name passed, $((SECONDS - step_started)) s"
  step_name=
}

# A trap and not a condition around the step: in a condition, bash would ignore failures inside it.
report_failure() {
  if [ -n "${step_name:-}" ]; then
    echo "== $step_name failed, $((SECONDS - step_started)) s" >&2
  fi
}
trap 'report_failure; stop_postgres' EXIT

main "$@"
