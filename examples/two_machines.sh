#!/bin/sh
# A run shared by two machines: PRISM where it is, the solving where the GPU is. Here one machine
# plays both; between them goes the folder. Arguments are passed on to the solving.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

echo "== Where PRISM is: the model and the questions"
prism-gpu export "$here/models/cluster.sm" -pctl 'S=? [ "premium" ]; P>=0.9 [ F<=10 "premium" ]' \
    -const N=8 -to "$work/questions" >"$work/log" || { cat "$work/log"; exit 1; }
ls "$work/questions"

echo "== Where the GPU is: the answers, for every state"
prism-gpu solve "$work/questions" "$@"

echo "== Where PRISM is: its report, with these answers"
prism-gpu report "$work/questions" >"$work/log" || { cat "$work/log"; exit 1; }
grep '^Result' "$work/log"
