#!/bin/sh
# Sets prism-gpu up, if need be, and runs its tests; arguments are passed on to pytest.
# Tests that need PRISM, a JDK or a GPU are skipped where there is none, and the summary names them.
# Up to four files are run at once; with a GPU, whose memory the tests measure, one after another.
# Files keep their order: those of few but long tests would else come last, and one core be idle.
SETUP_FROM=$0
SETUP_EXTRA=dev
. "$(dirname -- "$0")/../setup.sh"
cd "$root"
# Each process that a test starts would compile our modules again.
unset PYTHONDONTWRITEBYTECODE
if [ $# = 0 ]; then
    set -- -m "not slow" --durations 10
    command -v nvidia-smi >/dev/null ||
        set -- "$@" --numprocesses auto --maxprocesses 4 --max-worker-restart 0 \
            --dist loadfile --no-loadscope-reorder
fi
exec "$venv/bin/python" -m pytest "$@"
