#!/bin/sh
# Sets prism-gpu up, if need be, and runs its tests; arguments are passed on to pytest.
# Tests that need PRISM, a JDK or a GPU are skipped where there is none, and the summary names them.
# Up to four files are run at once; all that needs a GPU is run one after another.
SETUP_FROM=$0
SETUP_EXTRA=dev
. "$(dirname -- "$0")/../setup.sh"
cd "$root"
[ $# -gt 0 ] || set -- -m "not slow" --numprocesses auto --maxprocesses 4 --dist loadgroup
exec "$venv/bin/python" -m pytest "$@"
