#!/bin/sh
# Sets prism-gpu up, if need be, and runs its tests; arguments are passed on to pytest.
# Tests that need PRISM, a JDK or a GPU are skipped where there is none, and the summary names them.
SETUP_FROM=$0
SETUP_EXTRA=dev
. "$(dirname -- "$0")/../setup.sh"
cd "$root"
[ $# -gt 0 ] || set -- -m "not slow"
exec "$venv/bin/python" -m pytest "$@"
