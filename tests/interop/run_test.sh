#!/usr/bin/env bash
# Runs one interop test, run_test.sh SCRIPT TEST PEER WORK_DIR, with the Python of $WEIR_VENV (default below the user's
# cache folder).
set -euo pipefail
venv=${WEIR_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/venv}
exec "$venv/bin/python" "$(dirname "$0")/$1" "${@:2}"
