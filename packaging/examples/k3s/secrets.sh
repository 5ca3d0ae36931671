#!/bin/sh
# secrets.sh N [NAMESPACE]: this ring's keys and a token for each of N boards, as Secrets:
#   ./secrets.sh 4 | kubectl apply -f -
# Nothing of it stays here. A token lets one board in, once, within 24 hours: apply ring.yaml next.
set -eu
count=${1:?usage: secrets.sh N [NAMESPACE]}
namespace=${2:-ringpipe}
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
ringpipe keys new --dir "$own/keys" >/dev/null
names=$(seq -f 'agent-%g' 0 $((count - 1)))
# shellcheck disable=SC2086  # one word a board
ringpipe boards enrol --token --format json --roster "$own/roster.yaml" --keys "$own/keys" $names >"$own/tokens"

# secret NAME: the head of one; `KEY: base64` lines follow.
secret() {
    printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ndata:\n' "$1" "$namespace"
}
secret ringpipe-host
for file in "$own"/keys/*; do
    printf '  %s: %s\n' "$(basename "$file")" "$(base64 -w 0 "$file")"
done
secret ringpipe-tokens
sed -n 's/.*"name":"\([^"]*\)".*"token":"\([^"]*\)".*/\1 \2/p' "$own/tokens" | while read -r name token; do
    printf '  %s: %s\n' "$name" "$(printf %s "$token" | base64 -w 0)"
done
