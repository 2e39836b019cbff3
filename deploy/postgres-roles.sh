#!/bin/sh
# Runs once, on an empty data folder. The owner migrates and keeps the partitions; the program works as a role that cannot
# change append-only tables.
set -eu

psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  -v owner="$(cat /run/secrets/owner_password)" -v app="$(cat /run/secrets/app_password)" <<'SQL'
create role bailiwick_owner login password :'owner';
create role bailiwick_app login password :'app';
create database bailiwick owner bailiwick_owner;
revoke connect, temporary on database bailiwick from public;
grant connect on database bailiwick to bailiwick_app;
SQL
