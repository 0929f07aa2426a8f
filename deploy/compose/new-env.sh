#!/bin/sh
# Makes .env from .env.example with fresh secrets, and prints the administrator's API key, which is stored nowhere.
# Refuses where there is one: stores keep the passwords of their first start.
set -eu
umask 077
folder=$(dirname -- "$0")
target=${1:-$folder/.env}

if [ -e "$target" ]; then
    echo "new-env.sh: $target is there already; remove it first, if its stores are to be laid anew" >&2
    exit 1
fi

hex() { od -An -tx1 -N "$1" /dev/urandom | tr -d ' \n'; }
sha256() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
# An API key of MemPlane: an id of 8 hex digits and 32 random bytes as base64url.
api_key() { printf 'mpk_%s_%s' "$(hex 4)" "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"; }

admin_key=$(api_key)
node_key=$(api_key)
draft=$target.new
while IFS= read -r line; do
    case $line in
    MEMPLANE_ADMIN_KEY_SHA256=) echo "$line$(sha256 "$admin_key")" ;;
    MEMPLANE_NODE_KEY=) echo "$line$node_key" ;;
    MEMPLANE_NODE_KEY_SHA256=) echo "$line$(sha256 "$node_key")" ;;
    '#'* | '') echo "$line" ;;
    *=) echo "$line$(hex 24)" ;;
    *) echo "$line" ;;
    esac
done <"$folder/.env.example" >"$draft"
mv -- "$draft" "$target"
echo "made $target; the administrator's key, shown once:" >&2
echo "  export MEMPLANE_API_KEY=$admin_key"
