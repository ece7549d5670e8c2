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

# start_server [FLAG...]: starts one on a free port, with these flags too, and sets `port` and `server_log`.
start_server() {
    local directory
    directory=$(mktemp -d "$data/server.XXXXXX")
    server_log="$directory/log"
    touch "$server_log"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$binary" serve --bind 127.0.0.1 --port "$port" --dir "$directory/data" --durability off \
        --enable-debug-command yes "$@" >"$server_log" 2>&1 &
    servers+=($!)
    local attempt
    for attempt in $(seq 600); do
        grep -q '^ready' "$server_log" && return
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.05
    done
    echo "the server did not start:" && cat "$server_log"
    return 1
}

# python_environment [FOLDER]: a virtual environment with clients/FOLDER/requirements.txt in it, python's own unless another is named; sets
# `python`.
python_environment() {
    need python3 python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || need /missing python3-venv || return
    local wanted="$root/clients/${1:-python}/requirements.txt" environment="$work/venv${1:+-$1}"
    python="$environment/bin/python"
    cmp -s "$wanted" "$environment/requirements.txt" && return
    python3 -m venv "$environment" && "$python" -m pip install -q -r "$wanted" &&
        cp "$wanted" "$environment/requirements.txt"
}
