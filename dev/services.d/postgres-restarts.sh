# PostgreSQL as in postgres.sh, only for tests that restart it: they need not wait until the other tests
# have ended.
# shellcheck shell=bash disable=SC2034

server_port=$((port_base + 433))

# shellcheck source=dev/services.d/postgres.sh
. dev/services.d/postgres.sh
