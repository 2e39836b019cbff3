#!/bin/sh
# Secrets are files, so that no inspection of a container shows them; the program reads its environment.
set -eu

secret() { tr -d '\n' < "/run/secrets/$1"; }

if [ -f /run/secrets/app_password ]; then
  DATABASE_URL="postgres://bailiwick_app:$(secret app_password)@postgres:5432/bailiwick"
  NATS_URL="nats://bailiwick:$(secret nats_bailiwick)@nats:4222"
  export DATABASE_URL NATS_URL
fi
# Only where the owner's work is done: what migrates, and what keeps the partitions.
if [ -f /run/secrets/owner_password ]; then
  DATABASE_OWNER_URL="postgres://bailiwick_owner:$(secret owner_password)@postgres:5432/bailiwick"
  export DATABASE_OWNER_URL
fi
if [ -f /run/secrets/smtp_url ]; then
  SMTP_URL="$(secret smtp_url)"
  export SMTP_URL
fi

# Half of what Deno lets young objects take by itself, for no speed that could be measured (docs/memory.md).
memory=--v8-flags=--max-semi-space-size=16

# The network, its variables, facts of the system, and files; it writes only into its volumes, and starts no other program.
exec deno run --no-prompt --allow-net --allow-env --allow-sys --allow-read --allow-write=/data,/keys,/tmp --node-modules-dir=manual --no-lock "$memory" "$@"
