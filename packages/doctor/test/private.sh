# Servers of the tests' own, for settings that count for a whole server. Run in the root of the
# repository: bash private.sh pair|broker FUNCTION [args…]
# shellcheck shell=bash disable=SC2034,SC2154
set -euo pipefail
export service=doctor-$1 data=$PWD/.services/doctor-$1
mkdir -p "$data"
# shellcheck source=dev/services.d/lib/ports.sh
. dev/services.d/lib/ports.sh
claim_port_block

# A primary and a synchronous replica, with everything as it should be.
use_pair() {
  # shellcheck source=dev/services.d/postgres-pair.sh
  . dev/services.d/postgres-pair.sh
  primary_port=$((port_base + 437))
  replica_port=$((port_base + 438))
  local common="max_connections = 100
max_prepared_transactions = 5
statement_timeout = '60s'
idle_in_transaction_session_timeout = '5min'"
  eval "$(declare -f use_primary | sed '1s/use_primary/use_plain_primary/')"
  eval "$(declare -f use_replica | sed '1s/use_replica/use_plain_replica/')"
  eval "use_primary() { use_plain_primary; server_settings+=\$'\n'\"$common\"; }"
  eval "use_replica() { use_plain_replica; server_settings+=\$'\n'\"$common\"; }"
  eval "$(declare -f create_database | sed '1s/create_database/create_plain_database/')"
  # The replica is a copy of it, made before either was started.
  create_database() {
    create_plain_database
    "${as_owner[@]}" "$server_bin/pg_checksums" --enable -D "$server_folder" >>"$server_home/initdb.log"
  }
}

# One broker, with settings that cannot be changed while it runs.
use_broker() {
  # shellcheck source=dev/services.d/kafka.sh
  . dev/services.d/kafka.sh
  broker_port=$((port_base + 907))
  controller_port=$((port_base + 908))
  voters=$node_id@127.0.0.1:$controller_port
  node_config='auto.create.topics.enable=true
offsets.retention.minutes=60'
}

"use_$1"
shift
"$@"
