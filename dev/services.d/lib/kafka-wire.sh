# Requests to a Kafka broker in its own protocol. A JVM would take seconds for each.
# The fields of every request and response: https://kafka.apache.org/protocol
# shellcheck shell=bash disable=SC2034

# Time limit in seconds. A stopped broker (SIGSTOP) accepts a connection and never responds.
answer_timeout=2

# ask PORT API VERSION BODY: sends a request; all arguments except the port are in hex. Sets `answer`
# to the bytes after the correlation id, as numbers, and `at` to the first of them.
ask() {
  # An API, a version, a correlation id, and null as client id.
  local request=$2$3'00000001ffff'$4
  read -rd '' -a answer < <(exchange "$1" "$(printf %08x $((${#request} / 2)))$request") || true
  at=4
  ((${#answer[@]} > at))
}

# exchange PORT BYTES
exchange() {
  {
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    # shellcheck disable=SC2001,SC2059
    printf "$(sed 's/../\\x&/g' <<<"$2")" >&3
    local size
    size=$(timeout "$answer_timeout" head -c 4 <&3 | od -An -tx1 | tr -d ' \n')
    [[ -n $size ]] || exit 1
    timeout "$answer_timeout" head -c $((16#$size)) <&3 | od -An -v -tu1
  } 2>/dev/null
}

# take SIZE: sets `taken` to the next number.
take() {
  local left=$1
  taken=0
  while ((left-- > 0)); do
    taken=$((taken << 8 | answer[at++]))
  done
}

# take_text: sets `taken` to the next text; names of hosts and topics are ASCII.
take_text() {
  local size bytes
  take 2
  # 65535 is null.
  size=$((taken == 65535 ? 0 : taken))
  printf -v bytes '\\x%x' "${answer[@]:at:size}"
  ((size > 0)) || bytes=
  at=$((at + size))
  printf -v taken %b "$bytes"
}

# take_ids: sets `taken` to the next list of broker ids, as in 1,2,3.
take_ids() {
  local count ids=()
  take 4
  count=$taken
  while ((count-- > 0)); do
    take 4
    ids+=("$taken")
  done
  local IFS=,
  taken="${ids[*]}"
}

# take_brokers: sets `brokers` to the ids of registered brokers that are not fenced.
take_brokers() {
  local count
  brokers=()
  take 4
  count=$taken
  while ((count-- > 0)); do
    take 4
    brokers+=("$taken")
    take_text # host
    take 4    # port
    take_text # rack
  done
}

# sees PORT ID…: succeeds if the broker responds and lists these brokers.
sees() {
  # Metadata, of no topic.
  ask "$1" 0003 0001 00000000 || return 1
  take_brokers
  shift
  local id
  for id in "$@"; do
    [[ " ${brokers[*]} " == *" $id "* ]] || return 1
  done
}

# partitions PORT: prints a line for each: topic, partition, leader, replicas, replicas in sync.
# Without a leader the number is 4294967295, which is -1 read as unsigned.
partitions() {
  local topics
  # Metadata, of all topics.
  ask "$1" 0003 0001 ffffffff || return 1
  take_brokers
  take 4 # a broker that forwards to the controller
  take 4
  topics=$taken
  while ((topics-- > 0)); do
    take 2 # error
    take_text
    take_partitions "$taken"
  done
}

# take_partitions TOPIC
take_partitions() {
  local count line
  take 1 # internal
  take 4
  count=$taken
  while ((count-- > 0)); do
    take 2 # error
    line=$1
    take 4 && line+=" $taken"
    take 4 && line+=" $taken"
    take_ids && line+=" $taken"
    take_ids && line+=" $taken"
    echo "$line"
  done
}

# leads_quorum PORT: sets `epoch`; succeeds if this controller reports itself as the active one.
leads_quorum() {
  local topic=5f5f636c75737465725f6d65746164617461 # __cluster_metadata
  # DescribeQuorum, of the one partition of that topic. The zeros end the compact structures.
  ask "$1" 0037 0000 "00""0213${topic}020000000000""0000" || return 1
  # All fields before the partition number have a fixed size.
  at=32
  ((${#answer[@]} > at + 10)) || return 1
  take 2
  # Another one leads.
  ((taken == 0)) || return 1
  take 4 # the leader, itself
  take 4
  epoch=$taken
}
