# RabbitMQ, three nodes in one cluster, guest/guest; N is 1, 2 or 3.
#   url                      AMQP of each node, then the management API of each
#   ctl N ARGS…              rabbitmqctl on one node
#   memory_alarm on|off [N]  block and unblock publishers on all nodes; one node has the alarm
#   leader QUEUE             number of the node that leads a quorum queue, in the vhost /
#   kill_node N              SIGKILL
#   start_node N             returns when it has rejoined the others
#   partition_node N         cut it off from the other nodes but not from clients; needs root or sudo
#   heal                     end all partitions after the nodes have noticed them; `up` then waits
#                            until all three run
# shellcheck shell=bash disable=SC2034,SC2154

# Node N adds N to these.
first_amqp_port=$((port_base + 700))
first_management_port=$((port_base + 710))
first_distribution_port=$((port_base + 720))
epmd_port=$((port_base + 731))
# The nodes connect to each other with separate addresses, and clients use 127.0.0.1. So a firewall
# rule can separate the nodes without affecting a client. Each clone has its own addresses
# (127.0.77.N in the first block of ports).
network=127.0.$((port_base / 1000 + 52))
# Seconds of silence after which a node counts as down; the default of 60 is long for a test.
net_ticktime=5
firewall_table=redrive_rabbitmq_cluster_$port_base
extras=(url ctl memory_alarm leader kill_node start_node partition_node heal)

# shellcheck source=dev/services.d/lib/rabbitmq.sh
. dev/services.d/lib/rabbitmq.sh
# shellcheck source=dev/services.d/lib/cluster.sh
. dev/services.d/lib/cluster.sh

name_of_node() {
  echo "redrive$1@$network.$1"
}

use_node() {
  require_node "$@"
  local address="{${network//./,},$1}"
  node_folder=$data/$1
  node_name=$(name_of_node "$1")
  amqp_port=$((first_amqp_port + $1))
  management_port=$((first_management_port + $1))
  distribution_port=$((first_distribution_port + $1))
  node_erl_args="+S 2:2 -kernel net_ticktime $net_ticktime"
  node_erl_args+=" -kernel inet_dist_use_interface $address"
  node_erl_args+=" -kernel inet_dist_connect_options [{ip,$address}]"
  node_config="cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.classic_config.nodes.1 = $(name_of_node 1)
cluster_formation.classic_config.nodes.2 = $(name_of_node 2)
cluster_formation.classic_config.nodes.3 = $(name_of_node 3)"
}

url() {
  local n
  for n in 1 2 3; do
    echo "amqp://guest:guest@127.0.0.1:$((first_amqp_port + n))"
  done
  for n in 1 2 3; do
    echo "http://guest:guest@127.0.0.1:$((first_management_port + n))"
  done
}

amqp_urls() {
  local urls
  mapfile -t urls < <(url)
  echo "${urls[*]:0:3}"
}

up() {
  # After a partition a node can accept connections although it is about to pause.
  if [[ ! -f $data/was_cut ]] && each_node node_runs; then
    say "$(amqp_urls) (running)"
    return
  fi
  SECONDS=0
  install_rabbitmq
  start_epmd "$network.1,$network.2,$network.3"
  heal
  each_node launch_if_dead
  each_node await_or_restart_node
  within 60 each_node sees_nodes 3 || fail "the nodes did not connect to each other: see $data/*/log"
  rm -f "$data/was_cut"
  say "$(amqp_urls) (started in $SECONDS s)"
}

down() {
  # Only the nodes of this clone: another clone may be running its cluster.
  if [[ -f $data/was_cut ]]; then remove_cuts; fi
  # All concurrently. Otherwise the last one would pause before it stops, because it is alone.
  each_node signal_node
  each_node stop_node
  stop_process "$data/epmd.pid"
}

status() {
  cluster_status "$(amqp_urls)"
}

launch_if_dead() {
  is_alive "$node_folder/node.pid" || launch_node
}

# A node that pauses and resumes while its peers reconnect can wait for Erlang's `global` forever.
await_or_restart_node() {
  if ! within 60 node_answers_or_died || ! node_answers; then
    stop_process "$node_folder/node.pid" KILL
    launch_node
    await_node
  fi
}

signal_node() {
  if is_alive "$node_folder/node.pid"; then kill "$(pid_in "$node_folder/node.pid")"; fi
}

stop_node() {
  stop_process "$node_folder/node.pid"
}

# sees_nodes COUNT: succeeds if the node sees this number of running members, itself included.
sees_nodes() {
  local status
  status=$(node_ctl -q cluster_status --formatter json 2>/dev/null) || return 1
  [[ $status =~ \"running_nodes\":\[([^]]*)\] ]] || return 1
  [[ $(tr -cd @ <<<"${BASH_REMATCH[1]}") == "$(printf '@%.0s' $(seq "$1"))" ]]
}

ctl() {
  use_node "${1:-}"
  shift
  node_ctl "$@"
}

memory_alarm() {
  use_node "${2:-1}"
  node_memory_alarm "${1:-}"
}

# There is no leader for a short time during an election.
leader() {
  [[ -n ${1:-} ]] || fail "leader QUEUE"
  within 30 find_leader "$1" || fail "no node reports a leader of queue \"$1\""
}

# Asks the Raft group through any member with a majority. The queue's record keeps the name of a dead
# leader until there is a new one.
find_leader() {
  local n answer
  local query='{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"QUEUE"/utf8>>)),
    {Group, _} = amqqueue:get_pid(Q),
    {ok, _, {_, Leader}} = ra:members({Group, node()}, 2000),
    Leader.'
  for n in 1 2 3; do
    use_node "$n"
    node_runs || continue
    answer=$(node_ctl -q eval "${query/QUEUE/"$1"}" 2>/dev/null) || continue
    [[ $answer =~ redrive([123])@ ]] || continue
    echo "${BASH_REMATCH[1]}"
    return
  done
  return 1
}

kill_node() {
  use_node "${1:-}"
  stop_process "$node_folder/node.pid" KILL
}

start_node() {
  use_node "${1:-}"
  start_epmd "$network.1,$network.2,$network.3"
  launch_if_dead
  await_node
  within 60 sees_nodes "$(count_alive)" || fail "$node_name has not rejoined"
}

partition_node() {
  use_node "${1:-}"
  can_be_root || fail "partition_node changes the firewall: run it as root"
  is_alive "$node_folder/node.pid" || fail "$node_name is not running"
  command -v nft >/dev/null || install_packages nftables
  echo "$EPOCHSECONDS" >"$data/was_cut"
  local here=$network.$1 all=$network.0/24
  # Drops packets on arrival without a reset, as a broken cable does.
  as_root nft -f - <<RULES
add table ip $firewall_table
add chain ip $firewall_table input { type filter hook input priority 0; }
add rule ip $firewall_table input ip saddr $here ip daddr $all ip daddr != $here drop
add rule ip $firewall_table input ip daddr $here ip saddr $all ip saddr != $here drop
RULES
}

# Waits until both sides have noticed the partition. If it ends when only one side has, nodes
# reconnect to peers that still count them as connected, and RabbitMQ 3.10 may never resume. Silence
# is noticed after at most 5/4 of net_ticktime.
heal() {
  local noticed_at=0
  if [[ -f $data/was_cut ]]; then noticed_at=$(($(<"$data/was_cut") + net_ticktime * 5 / 4 + 2)); fi
  if has_cuts && ((EPOCHSECONDS < noticed_at)); then sleep $((noticed_at - EPOCHSECONDS)); fi
  remove_cuts
}

has_cuts() {
  command -v nft >/dev/null && as_root nft list table ip "$firewall_table" >/dev/null 2>&1
}

remove_cuts() {
  if has_cuts; then as_root nft delete table ip "$firewall_table"; fi
}
