import { type Script, script } from '@redrive/redis-internal'

/**
 * One script per step: it is applied completely or not at all. A script blocks the whole server, so each does a bounded
 * amount of work. The first write of each script needs memory, if any does: a full server rejects it before anything
 * changed.
 *
 * An entry belongs to a consumer while the group lists it with the name of the consumer and the same count. `XACK` does
 * not check that, so every script does.
 */
const SHARED = `
-- Consumer of entries that were returned. Any consumer takes them immediately, and the return is not counted.
local RETURNED = 'redrive:returned'

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns 1 for the owner, 2 when the claim has ended and no other consumer has the entry, else 0.
local function ownership(stream, group, consumer, id, count)
  local entry = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if not entry then return 2 end
  if entry[2] == consumer and entry[4] == tonumber(count) then return 1 end
  return entry[2] == RETURNED and entry[4] == count - 1 and 2 or 0
end

local function exists(stream, id)
  return #redis.call('XRANGE', stream, id, id) == 1
end

-- RETRYCOUNT is the count before the delivery that is returned: the next claim adds 1 again.
local function giveBack(stream, group, id, count)
  redis.call('XCLAIM', stream, group, RETURNED, 0, id, 'RETRYCOUNT', tonumber(count) - 1, 'JUSTID')
end

local function acknowledge(stream, group, id, isKept)
  redis.call('XACK', stream, group, id)
  if not isKept then redis.call('XDEL', stream, id) end
end
`

/** Returns a script with the shared functions. */
export const withShared = (body: string): Script => script(SHARED + body)

/** Creates streams and groups, and removes idle consumers. KEYS: streams. ARGV: group, then the start of each stream. */
export const DECLARE: Script = withShared(`
-- An hour without a request: a crashed consumer. It owns nothing any more.
local IDLE_MS = 3600000
for i, stream in ipairs(KEYS) do
  local created = redis.pcall('XGROUP', 'CREATE', stream, ARGV[1], ARGV[i + 1], 'MKSTREAM')
  if created.err and not string.find(created.err, 'BUSYGROUP', 1, true) then return created end
  for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', stream, ARGV[1])) do
    local name, pending, idle = info[2], info[4], info[6]
    local isOurs = string.sub(name, 1, 8) == 'redrive:' and name ~= RETURNED
    if isOurs and pending == 0 and idle > IDLE_MS then
      redis.call('XGROUP', 'DELCONSUMER', stream, ARGV[1], name)
    end
  end
end
return 1
`)

/**
 * Claims entries: returned ones, those whose lease ended, new ones. KEYS: streams, and a sorted set of retries if
 * ARGV[5] is '1'. ARGV: group, consumer, maximum, lease or '' to skip the search for ended leases, has retries, number of
 * entries that the consumer knows as its own, then for each stream where that search starts. Returns the next start for
 * each stream, the number of trimmed entries, 1 when the consumer owns more entries than it knows, and the entries:
 * number of the stream, id, count, fields.
 */
export const CLAIM: Script = withShared(`
local group, consumer, room, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
-- An hour: a handler may run for that long after its entry was trimmed, and still hand it off.
local TRIMMED_MS = 3600000
-- Examined per claim and stream, so that a long list of entries in flight does not block the server.
local EXAMINED = 200

local streams = {}
for i, key in ipairs(KEYS) do streams[i] = key end
if ARGV[5] == '1' then
  local retry = table.remove(streams)
  for _, packed in ipairs(redis.call('ZRANGEBYSCORE', retry, '-inf', clock(), 'LIMIT', 0, room)) do
    local added = redis.pcall('XADD', streams[1], '*', unpack(cmsgpack.unpack(packed)[2]))
    -- A full server rejects it: the retry stays here, and other messages continue.
    if type(added) == 'table' and added.err then break end
    redis.call('ZREM', retry, packed)
  end
end

local claimed, trimmed, starts = {}, 0, {}

-- A client library that loses its connection sends a claim again. The first one has granted entries, too.
local unknown, known = 0, tonumber(ARGV[6])
if lease ~= '' then
  for _, stream in ipairs(streams) do
    known = known - #redis.call('XPENDING', stream, group, '-', '+', known + 1, consumer)
    if known < 0 then
      unknown = 1
      break
    end
  end
end

local function take(i, id)
  local entry = redis.call('XCLAIM', streams[i], group, consumer, 0, id)[1]
  -- It was trimmed after its return.
  if not entry then
    trimmed = trimmed + 1
    return
  end
  local count = redis.call('XPENDING', streams[i], group, id, id, 1)[1][4]
  claimed[#claimed + 1] = { i, entry[1], count, entry[2] }
  room = room - 1
end

for i, stream in ipairs(streams) do
  for _, one in ipairs(redis.call('XPENDING', stream, group, '-', '+', room, 'redrive:returned')) do
    take(i, one[1])
  end
  starts[i] = '-'
  if lease ~= '' and room > 0 then
    local count = math.min(room, EXAMINED)
    local ended = redis.call('XPENDING', stream, group, 'IDLE', lease, ARGV[6 + i], '+', count)
    for _, one in ipairs(ended) do
      if exists(stream, one[1]) then
        take(i, one[1])
      elseif one[3] > math.max(TRIMMED_MS, tonumber(lease)) then
        redis.call('XACK', stream, group, one[1])
        trimmed = trimmed + 1
      end
    end
    if #ended == count then starts[i] = '(' .. ended[#ended][1] end
  end
end

for i, stream in ipairs(streams) do
  if room > 0 then
    local read = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', room, 'STREAMS', stream, '>')
    for _, entry in ipairs(read and read[1] and read[1][2] or {}) do
      claimed[#claimed + 1] = { i, entry[1], 1, entry[2] }
      room = room - 1
    end
  end
end
return { starts, trimmed, unknown, claimed }
`)

/**
 * Ends claims without a copy. KEYS: streams; the last one keeps its entries if ARGV[3] is '1'. ARGV: group, consumer,
 * isKept, then for each entry: 'done' or 'return', number of the stream, id, count. Returns for each: 1, 0 when another
 * consumer owns it, 2 when the claim had ended before, or -1 when a returned entry was trimmed and needs a copy.
 */
export const END: Script = withShared(`
local group, consumer = ARGV[1], ARGV[2]
local results = {}
for i = 4, #ARGV, 4 do
  local what, number, id, count = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local stream = KEYS[number]
  local result = ownership(stream, group, consumer, id, count)
  if result ~= 1 then
    -- Nothing to do.
  elseif what == 'done' then
    acknowledge(stream, group, id, ARGV[3] == '1' and number == #KEYS)
  elseif exists(stream, id) then
    giveBack(stream, group, id, count)
  else
    result = -1
  end
  results[#results + 1] = result
end
return results
`)

/**
 * Stores a copy and acknowledges the original. KEYS: stream of the original, target. ARGV: group, consumer, id, count,
 * isKept, 'retry' or 'stream', delay or retention in ms, then the fields. Returns 1, 0 when another consumer owns it, or 2
 * when the claim had ended before.
 */
export const HAND_OFF: Script = withShared(`
local stream, target = KEYS[1], KEYS[2]
local group, consumer, id, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local kind, ms = ARGV[6], tonumber(ARGV[7])
local result = ownership(stream, group, consumer, id, count)
if result ~= 1 then return result end
local fields = {}
for i = 8, #ARGV do fields[i - 7] = ARGV[i] end
if kind == 'retry' then
  -- With the id of the entry, two retries with the same content are two members.
  redis.call('ZADD', target, clock() + ms, cmsgpack.pack({ stream .. id, fields }))
elseif ms > 0 then
  redis.call('XADD', target, 'MINID', '~', math.max(0, clock() - ms), '*', unpack(fields))
  -- The youngest entry expires with the key.
  redis.call('PEXPIRE', target, ms)
else
  redis.call('XADD', target, '*', unpack(fields))
  -- Another consumer may have set a limit. It would remove this entry, too.
  redis.call('PERSIST', target)
end
acknowledge(stream, group, id, ARGV[5] == '1')
return 1
`)

/**
 * Renews leases. KEYS: streams. ARGV: group, consumer, then for each entry: number of the stream, id, count. Returns 1
 * for each that another consumer owns, else 0. An entry that was trimmed is not renewed: XCLAIM would remove it from the
 * group.
 */
export const RENEW: Script = withShared(`
local group, consumer = ARGV[1], ARGV[2]
local lost = {}
for i = 3, #ARGV, 3 do
  local stream, id, count = KEYS[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  local isOwned = ownership(stream, group, consumer, id, count) == 1
  if isOwned and exists(stream, id) then redis.call('XCLAIM', stream, group, consumer, 0, id, 'JUSTID') end
  lost[#lost + 1] = isOwned and 0 or 1
end
return lost
`)

/**
 * Returns entries of this consumer that it does not list: the response of their claim was lost. KEYS: streams. ARGV: group,
 * consumer, maximum, then for each listed entry: number of the stream, id. Returns the number of returned entries, and
 * the number of entries that were trimmed: no process has their bytes.
 */
export const RECOVER: Script = withShared(`
local group, consumer, listed = ARGV[1], ARGV[2], {}
for i = 4, #ARGV, 2 do listed[KEYS[tonumber(ARGV[i])] .. ARGV[i + 1]] = true end
local most, returned, trimmed = tonumber(ARGV[3]), 0, 0
local count = most + (#ARGV - 3) / 2
for _, stream in ipairs(KEYS) do
  for _, one in ipairs(redis.call('XPENDING', stream, group, '-', '+', count, consumer)) do
    if returned + trimmed == most then return { returned, trimmed } end
    if not listed[stream .. one[1]] then
      if exists(stream, one[1]) then
        giveBack(stream, group, one[1], one[4])
        returned = returned + 1
      else
        redis.call('XACK', stream, group, one[1])
        trimmed = trimmed + 1
      end
    end
  end
end
return { returned, trimmed }
`)

/** Removes a consumer that owns nothing. With entries, XGROUP DELCONSUMER would lose them. KEYS: streams. ARGV: group, consumer. */
export const LEAVE: Script = withShared(`
for _, stream in ipairs(KEYS) do
  if #redis.call('XPENDING', stream, ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', stream, ARGV[1], ARGV[2])
  end
end
return 1
`)
