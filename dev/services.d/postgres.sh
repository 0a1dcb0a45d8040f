# PostgreSQL, superuser and database `redrive`, no password, TCP on loopback only.
#   url    of the database
#   crash  SIGKILL of all its processes, as if the machine had lost power; `up` recovers
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash)

# shellcheck source=dev/services.d/lib/postgres.sh
. dev/services.d/lib/postgres.sh

server_home=$data
# postgres-restarts.sh sets another port.
server_port=${server_port:-$((port_base + 432))}
server_settings=
use_debian_server

up() {
  server_up install_debian_server
}
