# One RabbitMQ node, described by these variables of the service file:
#   node_folder  node_name  amqp_port  management_port  distribution_port  epmd_port
#   node_config (lines for rabbitmq.conf)  node_erl_args
# Every name and port is separate, including those of epmd, so nothing is shared with another broker.
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

# Does not use the wrapper in sbin, which changes the user and drops the environment.
rabbitmq_scripts=/usr/lib/rabbitmq/bin
memory_limit=2GB

install_rabbitmq() {
  [[ -x $rabbitmq_scripts/rabbitmq-server ]] || install_packages rabbitmq-server
}

node_environment() {
  environment=(
    PATH="$PATH" LANG=C.UTF-8 HOME="$data"
    ERL_EPMD_PORT="$epmd_port"
    RABBITMQ_NODENAME="$node_name"
    RABBITMQ_USE_LONGNAME="$([[ $node_name == *.* ]] && echo true || echo false)"
    RABBITMQ_DIST_PORT="$distribution_port"
    RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_CONFIG_FILE="$node_folder/rabbitmq.conf"
    RABBITMQ_ADVANCED_CONFIG_FILE="$node_folder/advanced.config"
    RABBITMQ_GENERATED_CONFIG_DIR="$node_folder/config"
    RABBITMQ_ENABLED_PLUGINS=rabbitmq_management
    RABBITMQ_ENABLED_PLUGINS_FILE="$node_folder/enabled_plugins"
    RABBITMQ_MNESIA_BASE="$node_folder"
    RABBITMQ_LOG_BASE="$node_folder/log"
    # Schedulers that sleep when idle and move freely: tests and other nodes use the same cores.
    RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD=none
    RABBITMQ_SCHEDULER_BIND_TYPE=u
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$node_erl_args"
    RABBITMQ_CTL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
    # Makes the script exec the server instead of waiting for it, so that the pid is the server's.
    detached=true
  )
}

write_node_config() {
  mkdir -p "$node_folder/log"
  if [[ ! -f $data/.erlang.cookie ]]; then
    (umask 377 && tr -d - </proc/sys/kernel/random/uuid >"$data/.erlang.cookie")
  fi
  # After a kill, an expired message whose move was not confirmed moves again after 10 s instead of 3 min.
  echo '[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 10000}]}].' >"$node_folder/advanced.config"
  cat >"$node_folder/rabbitmq.conf" <<CONFIG
listeners.tcp.1 = 127.0.0.1:$amqp_port
management.tcp.ip = 127.0.0.1
management.tcp.port = $management_port
vm_memory_high_watermark.absolute = $memory_limit
disk_free_limit.absolute = 100MB
log.file = rabbit.log
log.file.level = warning
$node_config
CONFIG
}

# start_epmd ADDRESSES
start_epmd() {
  is_alive "$data/epmd.pid" && return
  require_free_ports "$epmd_port"
  launch "$data/epmd.pid" "$data/epmd.log" epmd -port "$epmd_port" -address "$1"
  within 10 accepts "$epmd_port" || fail "epmd did not start: see $data/epmd.log"
}

launch_node() {
  require_free_ports "$amqp_port" "$management_port" "$distribution_port"
  write_node_config
  node_environment
  # The maximum number of connections that the machine permits, up to the usual setting of a server.
  ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
  launch "$node_folder/node.pid" "$node_folder/log/console.log" \
    env -i "${environment[@]}" "$rabbitmq_scripts/rabbitmq-server"
}

# The listeners open last, so a node that sends its greeting has started.
node_greets() {
  local first
  first=$({
    exec 3<>"/dev/tcp/127.0.0.1/$amqp_port" || exit 1
    printf 'AMQP\0\0\11\1' >&3
    timeout 5 head -c 1 <&3 | od -An -tu1
  } 2>/dev/null) || return 1
  # 1 is a method frame, connection.start; a rejection would start with the A of AMQP.
  [[ $first -eq 1 ]]
}

# Checks the port without a greeting, which the broker would log as a lost client. Used by `up`, which
# every test file calls.
node_runs() {
  is_alive "$node_folder/node.pid" && accepts "$amqp_port"
}

node_answers() {
  is_alive "$node_folder/node.pid" && node_greets
}

node_answers_or_died() {
  is_dead "$node_folder/node.pid" || node_greets
}

await_node() {
  within 120 node_answers_or_died && node_answers && return
  tail -q -n 20 "$node_folder/log/console.log" "$node_folder/log/rabbit.log" >&2 || true
  fail "$node_name did not start: see $node_folder/log"
}

node_ctl() {
  is_alive "$node_folder/node.pid" || fail "$node_name is not running"
  node_environment
  env -i "${environment[@]}" "$rabbitmq_scripts/rabbitmqctl" "$@"
}

# node_memory_alarm on|off: an alarm blocks publishers (connection.blocked).
node_memory_alarm() {
  case ${1:-} in
  on) node_ctl -q set_vm_memory_high_watermark absolute 1MB ;;
  off) node_ctl -q set_vm_memory_high_watermark absolute "$memory_limit" ;;
  *) fail "memory_alarm on|off" ;;
  esac
}
