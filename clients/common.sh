# Shared by clients/run and clients/suites/run, which source it with the repository's root as working directory:
# finds or builds the binary, installs what is missing, starts servers and stops them at the end.
#
# Sets `root`, `binary`, `work` (a folder under target for everything that is fetched), `logs`.
root=$PWD

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}" CARGO_TERM_COLOR=never
binary="${TIDEMARK_BIN:-$CARGO_TARGET_DIR/test-fast/tidemark}"
if [ -z "${TIDEMARK_BIN:-}" ]; then
    cargo build --profile test-fast --locked -p tidemark || exit 1
fi
# The server takes TIDEMARK_* for settings.
unset TIDEMARK_BIN

work="$CARGO_TARGET_DIR/clients"
logs="$work/logs"
servers=()
mkdir -p "$logs"
# The servers' data. A new directory, so that runs side by side do not meet.
data=$(mktemp -d "$work/data.XXXXXX")
stop_servers() {
    [ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null
    wait
    servers=()
}
trap 'stop_servers; rm -rf "$data"' EXIT

# need COMMAND PACKAGE: installs a Debian package unless the command is there.
need() {
    command -v "$1" >/dev/null && return
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$2"
}

# start_server: starts one on a free port and sets `port`.
start_server() {
    local directory log
    directory=$(mktemp -d "$data/server.XXXXXX")
    log="$directory/log"
    touch "$log"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$binary" serve --bind 127.0.0.1 --port "$port" --dir "$directory/data" --durability off \
        --enable-debug-command yes >"$log" 2>&1 &
    servers+=($!)
    local attempt
    for attempt in $(seq 600); do
        grep -q '^ready' "$log" && return
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.05
    done
    echo "the server did not start:" && cat "$log"
    return 1
}

# python_environment: a virtual environment with clients/python/requirements.txt in it; sets `python`.
python_environment() {
    need python3 python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || need /missing python3-venv || return
    python="$work/venv/bin/python"
    local wanted="$root/clients/python/requirements.txt"
    cmp -s "$wanted" "$work/venv/requirements.txt" && return
    python3 -m venv "$work/venv" && "$python" -m pip install -q -r "$wanted" &&
        cp "$wanted" "$work/venv/requirements.txt"
}
