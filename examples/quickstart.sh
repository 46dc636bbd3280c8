#!/bin/sh
# Sets prism-gpu up, if need be, and checks one property each of three published models: a token
# ring (herman), a workstation cluster and a tandem queue. Arguments are passed on to prism-gpu.
SETUP_FROM=$0
SETUP_EXTRA=plots
. "$(dirname -- "$0")/../setup.sh"

models="$root/examples/models"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
"$venv/bin/python" "$models/herman.py" 11 -o "$work/herman11.pm"

"$venv/bin/prism-gpu" doctor || exit 1

check() {
    echo
    echo "== $1"
    shift
    if ! "$venv/bin/prism-gpu" "$@" >"$work/log" || ! grep -q '^Result' "$work/log"; then
        cat "$work/log"
        exit 1
    fi
    grep -E '^(States|Transitions|prism-gpu|Result|Time for model)|iterations in' "$work/log"
}

check "Herman's ring of 11: mean steps until one token is left, at worst from three" \
    "$work/herman11.pm" -pctl 'filter(max, R=? [ F "stable" ], num_tokens=3)' -gpuinfo "$@"
check "Workstation cluster, 64 a side: time share of premium quality" \
    "$models/cluster.sm" -pctl 'S=? [ "premium" ]' -const N=64 -gpuinfo "$@"
check "Tandem queue of capacity 255: mean number of customers" \
    "$models/tandem.sm" -pctl 'R{"customers"}=? [ S ]' -const c=255 -gpuinfo "$@"

cat <<END

Type next, say:
    PATH="$venv/bin:\$PATH"
    prism-gpu $models/cluster.sm $models/cluster.csl -const N=16,T=10
    prism-gpu -help
END
