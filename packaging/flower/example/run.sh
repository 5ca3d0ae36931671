#!/bin/sh
# Two rings of two boards as sites of Flower, on the loopback device, without a network.
#
#   run.sh [DIR [PORT [KEY=VALUE]...]]
#
# DIR      folder for everything, new or of this script (default: flower-example)
# PORT     first of four ports (default: 28000)
# KEY=...  run-config, as in ringpipe-flower(7): rule='"fedadam"' rounds=5
#
# The PATH has ringpipe, and the programs of flwr 1.42 (pip install packaging/flower). Every wait
# has a timeout, and everything that was started ends with this script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-flower-example}
port=${2:-28000}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Flower sends usage data and asks for updates unless it is told not to.
export FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 FLWR_HOME="$dir/home"

started=
finish() {
    trap - EXIT INT TERM
    # shellcheck disable=SC2086  # ids
    [ -z "$started" ] || kill $started 2>/dev/null || true
    for id in $started; do
        limit=100 # tenths of a second
        while kill -0 "$id" 2>/dev/null && [ $limit -gt 0 ]; do
            sleep 0.1
            limit=$((limit - 1))
        done
        kill -9 "$id" 2>/dev/null || true
    done
}
trap finish EXIT
trap 'exit 130' INT TERM

# The split of the samples, the first weights, and a folder with a run file for each site.
run=$here/run.yaml
[ -f "$dir/split.json" ] || timeout 120 ringpipe data split "$run" --sites 2 --by dirichlet:0.5 -o "$dir/split.json"
[ -f "$dir/first/weights.safetensors" ] || timeout 300 ringpipe train "$run" --set train.steps=1 --set optimizer.lr=0 --out "$dir/first" --quiet
for site in site-0 site-1; do
    mkdir -p "$dir/$site"
    sed "s|^data: {|data: {site: {split: ../split.json, name: $site}, |" "$run" >"$dir/$site/site.yaml"
done

# The link, and a node for each site; none of them listens on another device than lo.
mkdir -p "$dir/home"
cat >"$dir/home/config.toml" <<EOF
[superlink]
default = "lo"

[superlink.lo]
address = "127.0.0.1:$port"
insecure = true
EOF
cd "$dir"
flower-superlink --insecure --disable-runtime-dependency-installation --host 127.0.0.1 --port "$port" >superlink.log 2>&1 &
started="$started $!"
ready() {
    python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1).close()" 2>/dev/null
}
limit=60 # seconds
until ready; do
    [ $limit -gt 0 ] || { echo "run.sh: no SuperLink after 60 s: $dir/superlink.log" >&2; exit 3; }
    sleep 1
    limit=$((limit - 1))
done
next=$port
for site in site-0 site-1; do
    next=$((next + 1))
    flower-supernode --insecure --superlink "127.0.0.1:$port" --port $next --node-config "site=\"$dir/$site\" program=\"$(command -v ringpipe)\"" >"$site.log" 2>&1 &
    started="$started $!"
done

timeout 900 flwr run "$here/.." lo --stream --run-config "start=\"$dir/first/weights.safetensors\" out=\"$dir/out\" steps=16 wait=300.0 $*"
[ -f "$dir/out/weights.safetensors" ] || { echo "run.sh: no weights: $dir/superlink.log" >&2; exit 3; }
timeout 300 ringpipe eval "$run" --weights "$dir/out/weights.safetensors"
