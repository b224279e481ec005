#!/bin/bash
# Run once by PostgreSQL's image, when it makes its data folder: makes the council's own role, which is
# no superuser, and a database that belongs to it. The password is the one in the council's address.
set -euo pipefail

address=$(<"$DATABASE_URL_FILE")
password=${address#postgresql://council:}
password=${password%%@*}
[[ $password =~ ^[A-Za-z0-9]+$ ]] || {
  echo "$DATABASE_URL_FILE: expected postgresql://council:PASSWORD@database/council, PASSWORD of letters and digits" >&2
  exit 1
}

# By standard input: the arguments of a command are everybody's to read.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<SQL
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
CREATE ROLE council LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD '$password';
CREATE DATABASE council OWNER council ENCODING UTF8 TEMPLATE template0;
REVOKE CONNECT ON DATABASE council FROM PUBLIC;
SQL
