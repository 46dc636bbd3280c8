#!/bin/sh
# The tables of a published experiment, made again: Herman's ring of Bosnacki, Edelkamp, Sulewski
# and Wijs (2011), at a size for laptops. Ours stand beside the paper's figures, and are checked
# before they are timed. `--scale paper` takes the sizes of the paper. Arguments are passed on.
set -eu
[ $# -gt 0 ] || set -- --scale small
exec prism-gpu reproduce herman "$@"
