# Sets up .venv beside this file, once; read by examples/quickstart.sh and tests/run.sh.
#
# Needs Python 3.11 or newer. As root on Debian and its kin it installs what the system lacks; else
# it says what to install. SETUP_EXTRA names what is wanted besides prism-gpu itself.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "${SETUP_FROM:-$0}")/.." && pwd)
venv="$root/.venv"

debian_package() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing $1 ..." >&2
        { apt-get install -y -qq "$1" || { apt-get update -qq && apt-get install -y -qq "$1"; }; } \
            >/dev/null 2>&1 && return 0
    fi
    echo "Please install $1 (on Debian: apt-get install $1)." >&2
    return 1
}

newest_python() {
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

# Which CuPy fits the driver; nothing where there is no driver.
cuda_extra() {
    command -v nvidia-smi >/dev/null || return 0
    case $(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/\1/p') in
        12) echo ",cuda12x" ;;
        1[3-9]) echo ",cuda13x" ;;
    esac
}

python=$(newest_python) || { debian_package python3 && python=$(newest_python); } || {
    echo "Python 3.11 or newer is needed." >&2
    exit 1
}
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    rm -rf "$venv"
    "$python" -m venv "$venv" >/dev/null 2>&1 || {
        rm -rf "$venv"
        debian_package python3-venv
        "$python" -m venv "$venv"
    }
fi
# The CPU engine's library is compiled when prism-gpu is installed.
if [ -z "${CXX:-}" ] && ! command -v c++ >/dev/null && ! command -v g++ >/dev/null &&
    ! command -v clang++ >/dev/null; then
    debian_package g++ || exit 1
fi
extras=${SETUP_EXTRA:-}$(cuda_extra)
extras=${extras#,}
stamp="$venv/prism-gpu-set-up-${extras:-plain}"
if [ ! -f "$stamp" ] || [ -n "$(find "$root/pyproject.toml" "$root/CMakeLists.txt" \
    "$root/engines/host/src" -newer "$stamp")" ]; then
    echo "Installing prism-gpu into $venv, which takes about a minute ..." >&2
    pip="$venv/bin/python -m pip install -q --disable-pip-version-check"
    $pip -e "$root${extras:+[$extras]}"
    touch "$stamp"
fi
# A run starts in two thirds of the time where Python need not compile our modules first.
"$venv/bin/python" -m compileall -q "$root/bridge" "$root/engines" "$root/prism_gpu" \
    "$root/prism_hooks" || true
# Paths are sampled by compiled C where there is no GPU; all else does without.
"$venv/bin/python" -c 'from engines.program.native import compiler; compiler()' 2>/dev/null ||
    debian_package gcc || true
# PRISM is Java, and prism-gpu compiles a few classes for it. Without PRISM neither is needed.
if "$venv/bin/python" -c 'from bridge.install import find_prism; find_prism()' 2>/dev/null; then
    command -v java >/dev/null || [ -n "${JAVA_HOME:-}" ] || debian_package default-jdk-headless ||
        true
fi
