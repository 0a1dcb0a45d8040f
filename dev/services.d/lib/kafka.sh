# One Kafka broker that is also a controller (KRaft), described by these variables of the service file:
#   node_folder  node_id  broker_port  controller_port
#   voters (id@host:port of each controller)  copies (of each partition)  in_sync_copies (to accept
#   a write)  node_config (more lines for server.properties)
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh
# shellcheck source=dev/services.d/lib/maven.sh
. dev/services.d/lib/maven.sh
# shellcheck source=dev/services.d/lib/kafka-wire.sh
. dev/services.d/lib/kafka-wire.sh

kafka_version=4.3.1
# The logger of Kafka's distribution; the Maven artifact depends on none.
log4j_version=2.25.4
# Checksum of the list of all jars with their checksums, as `sha256sum *.jar` prints it.
jars_sha256=6953bfc4d23c24004ed3d44b741c7a4538a923f476f85ff7cf086e87ead4b49c
# All clones share it.
cache=/var/cache/redrive
[[ $EUID -eq 0 ]] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/redrive
dist=$cache/kafka-$kafka_version
# Any id works. It shows which cluster a folder belongs to.
cluster_id=cmVkcml2ZS1rYWZrYS10ZQ
# Starts quickly and uses few cores, because tests and other brokers share them.
java_options=(-Xms256m -Xmx512m -XX:+UseSerialGC -XX:-UsePerfData)

install_kafka() {
  install_java Kafka
  install_jars "$dist" "$jars_sha256" "org.apache.kafka:kafka_2.13:$kafka_version" \
    "org.apache.logging.log4j:log4j-slf4j-impl:$log4j_version"
}

launch_node() {
  # The file exists if another program stopped the server.
  if [[ -s $node_folder/node.pid ]]; then await_threads "$(pid_in "$node_folder/node.pid")"; fi
  require_free_ports "$broker_port" "$controller_port"
  mkdir -p "$node_folder/log"
  write_node_config
  [[ -f $node_folder/formatted ]] || format_node
  # The maximum number of connections that the machine permits, up to the usual setting of a server.
  ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
  launch "$node_folder/node.pid" "$node_folder/log/console.log" \
    java "${java_options[@]}" -XX:ErrorFile="$node_folder/log/jvm-error.log" \
    -Dlog4j2.configurationFile="$node_folder/log4j2.properties" \
    -cp "$dist/*" kafka.Kafka "$node_folder/server.properties"
}

# The marker file is created last, so that an incomplete format is never used.
format_node() {
  rm -rf "$node_folder/data"
  java -Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dlog4j2.configurationFile="$node_folder/log4j2.properties" \
    -cp "$dist/*" kafka.tools.StorageTool \
    format --cluster-id "$cluster_id" --config "$node_folder/server.properties" \
    >"$node_folder/log/format.log" 2>&1 || fail_with_log "could not format node $node_id" format.log
  touch "$node_folder/formatted"
}

# Small numbers of threads and partitions for a small machine. The low session limits are for tests
# that wait until a consumer counts as dead. A killed broker cannot come back before the end of its
# own session, so that session is short where tests kill brokers: 3 s instead of 9. With less, a busy
# broker would count as dead.
write_node_config() {
  write_log_config
  cat >"$node_folder/server.properties" <<CONFIG
process.roles=broker,controller
node.id=$node_id
controller.quorum.voters=$voters
listeners=PLAINTEXT://127.0.0.1:$broker_port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$broker_port
controller.listener.names=CONTROLLER
log.dirs=$node_folder/data

default.replication.factor=$copies
min.insync.replicas=$in_sync_copies
unclean.leader.election.enable=false
auto.create.topics.enable=false
controlled.shutdown.enable=true
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=${broker_session_ms:-3000}

offsets.topic.replication.factor=$copies
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$in_sync_copies
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=$copies
share.coordinator.state.topic.min.isr=$in_sync_copies
share.coordinator.state.topic.num.partitions=4

group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=200
group.share.min.session.timeout.ms=1000
group.share.min.heartbeat.interval.ms=200

num.network.threads=2
num.io.threads=3
log.cleaner.dedupe.buffer.size=16777216
$node_config
CONFIG
}

# At most 30 MB: a broker that cannot reach another one logs many warnings per second.
write_log_config() {
  cat >"$node_folder/log4j2.properties" <<CONFIG
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = $node_folder/log/kafka.log
appender.file.filePattern = $node_folder/log/kafka.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
appender.file.policy.type = SizeBasedTriggeringPolicy
appender.file.policy.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
CONFIG
}

# A broker responds before the controller allows it to serve. It lists itself only after that.
node_answers() {
  is_alive "$node_folder/node.pid" && sees "$broker_port" "$node_id"
}

node_answers_or_died() {
  is_dead "$node_folder/node.pid" || node_answers
}

launch_if_dead() {
  if is_alive "$node_folder/node.pid"; then
    signal_node CONT
  else
    launch_node
  fi
}

await_node() {
  within 90 node_answers_or_died && node_answers && return
  fail_with_log "node $node_id did not start" console.log kafka.log
}

# fail_with_log SENTENCE FILE…
fail_with_log() {
  (cd "$node_folder/log" && shift && tail -q -n 20 "$@") >&2 || true
  fail "$1: see $node_folder/log"
}

# signal_node SIGNAL
signal_node() {
  is_alive "$node_folder/node.pid" || fail "node $node_id is not running"
  builtin kill -s "$1" "$(pid_in "$node_folder/node.pid")"
}

kill_now() {
  local pid=
  if is_alive "$node_folder/node.pid"; then pid=$(pid_in "$node_folder/node.pid"); fi
  stop_process "$node_folder/node.pid" KILL
  if [[ -n $pid ]]; then await_threads "$pid"; fi
}

# await_threads PID: waits for all threads. A killed process counts as dead when its first thread
# ends, but its ports and files are free only when the last one ends.
await_threads() {
  within 10 has_no_threads "$1" || true
}

has_no_threads() {
  local threads=("/proc/$1/task/"*)
  ((${#threads[@]} <= 1))
}

# begin_stop: sends TERM. A stopped process (SIGSTOP) gets it when it continues.
begin_stop() {
  if is_alive "$node_folder/node.pid"; then
    signal_node TERM
    signal_node CONT
  fi
}

node_is_dead() {
  is_dead "$node_folder/node.pid"
}
