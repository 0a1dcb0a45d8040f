# NATS with JetStream, three servers in one cluster, no password; N is 1, 2 or 3.
#   url             nats://host:port of each server
#   kill_node N     SIGKILL
#   start_node N    returns when its streams have caught up; immediately without a majority
# `up` repairs killed servers.
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url kill_node start_node)

# shellcheck source=dev/services.d/lib/nats.sh
. dev/services.d/lib/nats.sh
# shellcheck source=dev/services.d/lib/cluster.sh
. dev/services.d/lib/cluster.sh

# Node N adds N to these.
first_client_port=$((port_base + 230))
first_monitor_port=$((port_base + 234))
first_route_port=$((port_base + 238))

use_node() {
  require_node "$@"
  node_folder=$data/$1
  client_port=$((first_client_port + $1))
  monitor_port=$((first_monitor_port + $1))
  local n routes=
  for n in 1 2 3; do routes+="nats://127.0.0.1:$((first_route_port + n)), "; done
  node_config="server_name: redrive-$1
cluster {
  name: redrive
  listen: 127.0.0.1:$((first_route_port + $1))
  routes: [${routes%, }]
}"
}

url() {
  local n
  for n in 1 2 3; do
    echo "nats://127.0.0.1:$((first_client_port + n))"
  done
}

urls() {
  local all
  mapfile -t all < <(url)
  echo "${all[*]}"
}

up() {
  if each_node node_answers; then
    say "$(urls) (running)"
    return
  fi
  SECONDS=0
  install_nats
  each_node launch_if_dead
  each_node await_node
  say "$(urls) (started in $SECONDS s)"
}

down() {
  each_node stop_node
}

status() {
  cluster_status "$(urls)"
}

kill_node() {
  use_node "${1:-}"
  stop_process "$node_folder/node.pid" KILL
}

start_node() {
  use_node "${1:-}"
  launch_if_dead
  # Without a majority, JetStream has no leader and no server is healthy.
  (($(count_alive) >= 2)) || return 0
  await_node
}
