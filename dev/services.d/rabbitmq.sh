# RabbitMQ, one node, guest/guest.
#   url                  AMQP, then the management API
#   ctl ARGS…            rabbitmqctl
#   memory_alarm on|off  block and unblock publishers
#   crash                SIGKILL; `up` starts it again
# shellcheck shell=bash disable=SC2034,SC2154

# rabbitmq-restarts.sh sets another number.
node_number=${node_number:-0}
amqp_port=$((port_base + 700 + node_number))
management_port=$((port_base + 710 + node_number))
distribution_port=$((port_base + 720 + node_number))
epmd_port=$((port_base + 730 + node_number))
extras=(url ctl memory_alarm crash)

# shellcheck source=dev/services.d/lib/rabbitmq.sh
. dev/services.d/lib/rabbitmq.sh

node_folder=$data
node_name=redrive@localhost
node_config=
node_erl_args='-kernel inet_dist_use_interface {127,0,0,1}'

url() {
  echo "amqp://guest:guest@127.0.0.1:$amqp_port"
  echo "http://guest:guest@127.0.0.1:$management_port"
}

first_url() {
  url | head -n 1
}

up() {
  if node_runs; then
    say "$(first_url) (running)"
    return
  fi
  SECONDS=0
  install_rabbitmq
  stop_process "$node_folder/node.pid"
  start_epmd 127.0.0.1
  launch_node
  await_node
  say "$(first_url) (started in $SECONDS s)"
}

down() {
  stop_process "$node_folder/node.pid"
  stop_process "$data/epmd.pid"
}

status() {
  if ! node_answers; then
    say "not running"
    return 1
  fi
  say "$(first_url) (running)"
}

ctl() {
  node_ctl "$@"
}

memory_alarm() {
  node_memory_alarm "$@"
}

crash() {
  stop_process "$node_folder/node.pid" KILL
}
