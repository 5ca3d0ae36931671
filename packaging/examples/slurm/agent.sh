#!/bin/sh
# The agent of a task of ring.sbatch: its keys are made here, and are gone with it.
set -eu
number=$SLURM_PROCID
# shellcheck disable=SC2086  # one word a task
set -- $RINGPIPE_TOKENS
shift "$number"
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
trap 'kill "$agent" 2>/dev/null' TERM INT
# Of an agent two ports more carry data, and more where boards share a stage.
ringpipe-agent --listen "tcp://0.0.0.0:$((RINGPIPE_PORT + 20 * (1 + SLURM_LOCALID)))" --name "node$number" \
    --keys "$keys" --threads "${SLURM_CPUS_PER_TASK:-0}" --enrol "$1@$RINGPIPE_HOST:$RINGPIPE_PORT" &
agent=$!
wait "$agent" || true
wait "$agent" 2>/dev/null || true
