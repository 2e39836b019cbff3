#!/bin/sh
# `bailiwick start` and every other command of the program. Secrets are files, so that no inspection of a container shows
# them; the program reads its environment.
set -eu

secret() { tr -d '\n' < "/run/secrets/$1"; }

if [ -f /run/secrets/app_password ]; then
  DATABASE_URL="postgres://bailiwick_app:$(secret app_password)@postgres:5432/bailiwick"
  NATS_URL="nats://bailiwick:$(secret nats_bailiwick)@nats:4222"
  export DATABASE_URL NATS_URL
fi
# Only the containers that migrate or keep the partitions have the owner's password.
if [ -f /run/secrets/owner_password ]; then
  DATABASE_OWNER_URL="postgres://bailiwick_owner:$(secret owner_password)@postgres:5432/bailiwick"
  export DATABASE_OWNER_URL
fi
if [ -f /run/secrets/smtp_url ]; then
  SMTP_URL="$(secret smtp_url)"
  export SMTP_URL
fi

# Half of Deno's default for young objects, without a measurable loss of speed (docs/memory.md).
memory=--v8-flags=--max-semi-space-size=16

# Allows the network, the environment, facts of the system and reading; writing only in the volumes, and no other program.
exec deno run --no-prompt --allow-net --allow-env --allow-sys --allow-read --allow-write=/data,/keys,/tmp --no-config --no-lock "$memory" /app/bailiwick.js "$@"
