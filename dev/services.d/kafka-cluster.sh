# Kafka, three brokers that are also the controllers (KRaft), as in `kafka`; N is 1, 2 or 3.
#   url                     host:port of each broker, with commas
#   kill_node N             SIGKILL
#   start_node N            returns when it has rejoined and caught up; immediately without a majority
#   pause_node N            SIGSTOP: connections stay open, nothing responds
#   unpause_node N          SIGCONT
#   controller              number of the node that is the active controller
#   leader TOPIC PARTITION  number of the leader; may be a dead node until the cluster notices
# `up` repairs killed and paused nodes.
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url kill_node start_node pause_node unpause_node controller leader)

# shellcheck source=dev/services.d/lib/kafka.sh
. dev/services.d/lib/kafka.sh
# shellcheck source=dev/services.d/lib/cluster.sh
. dev/services.d/lib/cluster.sh

# Node N adds N - 1 to these.
first_broker_port=$((port_base + 910))
first_controller_port=$((port_base + 915))
voters=1@127.0.0.1:$((port_base + 915)),2@127.0.0.1:$((port_base + 916)),3@127.0.0.1:$((port_base + 917))
copies=3
in_sync_copies=2
# A slow replica is noticed after 3 s instead of 30, like a dead broker. The two quorum settings are
# Kafka's defaults. They are listed because they determine the time of a failover.
node_config='replica.lag.time.max.ms=3000
controller.quorum.election.timeout.ms=1000
controller.quorum.fetch.timeout.ms=2000'

use_node() {
  require_node "$@"
  node_folder=$data/$1
  node_id=$1
  broker_port=$((first_broker_port + $1 - 1))
  controller_port=$((first_controller_port + $1 - 1))
}

url() {
  local n urls=()
  for n in 0 1 2; do
    urls+=("127.0.0.1:$((first_broker_port + n))")
  done
  local IFS=,
  echo "${urls[*]}"
}

up() {
  if each_node sees_nodes 1 2 3; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  install_kafka
  each_node launch_if_dead
  each_node await_node
  within 30 each_node sees_nodes 1 2 3 || fail "the nodes did not connect to each other: see $data/*/log"
  within 60 each_node has_caught_up || fail "node $node_id does not catch up: see $node_folder/log"
  say "$(url) (started in $SECONDS s)"
}

# Stops all concurrently. A node whose controller has ended waits for minutes, so there is a limit.
down() {
  each_node begin_stop
  within 10 each_node node_is_dead || true
  each_node kill_now
}

status() {
  cluster_status "$(url)"
}

sees_nodes() {
  is_alive "$node_folder/node.pid" && sees "$broker_port" "$@"
}

# Succeeds if the node sees itself in sync for each partition that it has a copy of.
has_caught_up() {
  local rows topic partition leader replicas in_sync
  rows=$(partitions "$broker_port") || return 1
  while read -r topic partition leader replicas in_sync; do
    [[ $leader == [123] && $replicas == *"$node_id"* && $in_sync != *"$node_id"* ]] && return 1
  done <<<"$rows"
  return 0
}

kill_node() {
  use_node "${1:-}"
  kill_now
}

start_node() {
  use_node "${1:-}"
  launch_if_dead
  # A node cannot start before a second one exists, because both must elect a controller.
  (($(count_alive) >= 2)) || return 0
  await_node
  within 60 has_caught_up || fail "node $node_id does not catch up: see $node_folder/log"
}

pause_node() {
  use_node "${1:-}"
  signal_node STOP
}

unpause_node() {
  use_node "${1:-}"
  signal_node CONT
}

# There is no controller for a short time during an election.
controller() {
  within 30 find_controller || fail "no node is the active controller"
}

# Asks each node, because a broker's information may be old. A node that was paused may still report
# itself as the controller for a short time; the later epoch is right.
find_controller() {
  local n active='' latest=-1
  for n in 1 2 3; do
    use_node "$n"
    if node_leads_quorum && ((epoch > latest)); then
      active=$n
      latest=$epoch
    fi
  done
  [[ -n $active ]] && echo "$active"
}

node_leads_quorum() {
  is_alive "$node_folder/node.pid" && leads_quorum "$controller_port"
}

leader() {
  [[ $# -eq 2 ]] || fail "leader TOPIC PARTITION"
  local n found
  for n in 1 2 3; do
    use_node "$n"
    node_answers || continue
    found=$(partitions "$broker_port" | awk -v t="$1" -v p="$2" '$1 == t && $2 == p { print $3 }')
    [[ $found == [123] ]] || continue
    echo "$found"
    return
  done
  fail "no node reports a leader of topic \"$1\", partition $2"
}
