#!/usr/bin/env bash
# Runs one interop test with the Python of $WEIR_VENV (default below the user's cache folder).
set -euo pipefail
venv=${WEIR_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/venv}
exec "$venv/bin/python" "$(dirname "$0")/interop_test.py" "$@"
