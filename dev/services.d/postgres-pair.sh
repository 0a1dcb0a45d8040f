# PostgreSQL, a primary and a synchronous streaming replica, each as in `postgres`.
#   url            of the primary, then of the replica; the same after a failover
#   crash_primary  SIGKILL of all its processes, as if the machine had lost power
#   promote        make the replica a primary; returns when it accepts writes
#   stop_replica   commits on the primary then wait for it to come back
#   start_replica  returns when it responds and, if the primary runs, follows it again
# `up` repairs crashed and stopped servers; after a failover it creates a new, empty pair.
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash_primary promote stop_replica start_replica)

# shellcheck source=dev/services.d/lib/postgres.sh
. dev/services.d/lib/postgres.sh

primary_port=$((port_base + 435))
replica_port=$((port_base + 436))
use_debian_server

# use primary|replica: sets the variables of one server, by the role that `up` gives it.
use() {
  server_home=$data/$1
  "use_$1"
}

# With a named standby, `on` means that a commit returns when the replica has it on disk too. So a
# failover keeps every confirmed commit. It does not wait until the replica shows the commit: a read
# there may be slightly behind.
use_primary() {
  server_port=$primary_port
  # Keeps the log for a replica that was stopped for a while.
  server_settings="synchronous_standby_names = 'replica'
synchronous_commit = on
wal_keep_size = '512MB'"
}

# Without a standby name, because a promoted replica must not wait for one.
use_replica() {
  local primary="host=127.0.0.1 port=$primary_port user=redrive application_name=replica"
  server_port=$replica_port
  # Retries a lost primary sooner than after 5 s.
  server_settings="primary_conninfo = '$primary'
wal_retrieve_retry_interval = '200ms'"
}

url() {
  local name
  for name in primary replica; do
    use "$name"
    server_url
  done
}

up() {
  if follows; then
    say "$(roles) (running)"
    return
  fi
  SECONDS=0
  install_debian_server
  is_intact || create_pair
  start_pair
  if ! within 30 follows; then
    say "the replica does not follow its primary: making a new pair" >&2
    create_pair
    start_pair
    within 30 follows || fail "the replica does not follow: see $data/*/postgres.log"
  fi
  say "$(roles) (started in $SECONDS s)"
}

# The primary first: it waits until the replica has everything.
down() {
  local name
  for name in primary replica; do
    use "$name"
    stop_server
  done
}

status() {
  local summary state=running
  follows || state="not a pair"
  summary="$(roles) ($state)"
  [[ $summary != *"not running"*"not running"* ]] || summary="not running"
  say "$summary"
  [[ $state == running ]]
}

# Prints the current role of each server, which a failover changes.
roles() {
  use primary
  local first
  first="$(server_url) is $(role)"
  use replica
  echo "$first, $(server_url) is $(role)"
}

role() {
  if ! server_answers; then
    echo "not running"
  elif [[ $(ask 'SELECT pg_is_in_recovery()') == t ]]; then
    echo "replica"
  else
    echo "primary"
  fi
}

# ask QUERY
ask() {
  PGCONNECT_TIMEOUT=5 "$client_bin/psql" -XAtq -d "$(server_url)" -c "$1"
}

# Succeeds if both respond and the replica receives the primary's commits.
follows() {
  use replica
  server_answers || return 1
  use primary
  server_answers || return 1
  [[ $(ask "SELECT sync_state FROM pg_stat_replication
    WHERE application_name = 'replica' AND state = 'streaming'") == sync ]]
}

# PostgreSQL removes this file when it promotes.
is_intact() {
  use replica
  choose_folder
  [[ -f $server_folder/standby.signal ]]
}

# The replica is created last and removed first, so that an incomplete pair never counts as intact. A
# copy of a database before its first start is as good as pg_basebackup, and faster.
create_pair() {
  down
  use replica
  choose_folder
  local copy=$server_folder
  rm -rf "$copy" "$copy.new"
  use primary
  choose_folder
  rm -rf "$server_folder"
  create_database
  cp -a "$server_folder" "$copy.new"
  "${as_owner[@]}" touch "$copy.new/standby.signal"
  mv -T "$copy.new" "$copy"
}

start_pair() {
  use primary
  launch_if_dead
  await_server
  use replica
  launch_if_dead
}

crash_primary() {
  use primary
  crash_server
}

promote() {
  use replica
  server_answers || fail "the replica is not running"
  # Returns after the replica has replayed everything that it received.
  [[ $(ask 'SELECT pg_promote(true, 60)') == t ]] ||
    fail "not promoted: see $server_home/postgres.log"
}

stop_replica() {
  use replica
  stop_server
}

start_replica() {
  is_intact || fail "there is no replica: run \`dev/services up $service\` to create a new pair"
  use replica
  launch_if_dead
  await_server
  use primary
  if server_answers; then
    within 30 follows || fail "the replica does not follow: see $data/*/postgres.log"
  fi
}
