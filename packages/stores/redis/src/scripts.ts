import { type Script, script as scriptOf } from '@redrive/redis-internal'

/**
 * One script per operation: it is applied completely or not at all, whatever other processes do.
 * A script blocks the whole server while it runs, so each does a bounded amount of work and reports its
 * progress.
 *
 * Every script gets five keys in this order:
 * - `index`, a sorted set of positions (time and id), all with score 0: in the order of lists
 * - `expiry`, a sorted set of ids by expiry time
 * - `entries`, a hash: id → the dead letter as text
 * - `facts`, a hash: id → the fields for filters and totals, so that neither reads the text
 * - `totals`, a hash of counts
 * An id is in the first four or in none. All five keys expire together, with the last dead letter in them.
 *
 * The server's clock decides what has expired: the clocks of the processes differ.
 */
const SHARED = `
local index, expiry, entries, facts, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- \`flush\` writes the counts of the whole script once.
local changes = {}

local function add(field, by)
  changes[field] = (changes[field] or 0) + by
end

local function count(fact, sign)
  add('count', sign)
  add('bytes', sign * fact.bytes)
  add('class:' .. fact.class, sign)
  add('sink:' .. fact.sink, sign)
end

local function flush()
  for field, by in pairs(changes) do
    if by ~= 0 and redis.call('HINCRBY', totals, field, by) == 0 then
      redis.call('HDEL', totals, field)
    end
  end
  changes = {}
end

local function is_kept(id, now)
  local expires_at = redis.call('ZSCORE', expiry, id)
  return expires_at and tonumber(expires_at) > now
end

-- Deletions come first. A server at maxmemory rejects a script whose first write could need memory, as a
-- count could. It accepts such writes after a deletion.
local function remove(id)
  local fact = redis.call('HGET', facts, id)
  redis.call('ZREM', expiry, id)
  redis.call('HDEL', entries, id)
  -- An evicted key must not cause an endless loop of calls.
  if not fact then return false end
  fact = cjson.decode(fact)
  redis.call('ZREM', index, fact.at .. ':' .. id)
  redis.call('HDEL', facts, id)
  count(fact, -1)
  return true
end

-- Returns true when there may be more.
local function trim(now, most)
  local gone = redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, most)
  for _, id in ipairs(gone) do remove(id) end
  return #gone == most
end
`

function script(body: string): Script {
  return scriptOf(`${SHARED}
local function main()
${body}
end
local result = main()
flush()
return result`)
}

/** retention, id, facts, text, max entries, max bytes, max to trim → 'saved', 'full' or 'again'. */
export const SAVE: Script = script(`
local retention, id, fact, text = tonumber(ARGV[1]), ARGV[2], cjson.decode(ARGV[3]), ARGV[4]
local now = clock()
local is_more = trim(now, tonumber(ARGV[7]))
flush()

local old = redis.call('HGET', facts, id)
local grown = fact.bytes - (old and cjson.decode(old).bytes or 0)
local bytes = tonumber(redis.call('HGET', totals, 'bytes') or 0) + grown
local is_over = not old and redis.call('ZCARD', index) >= tonumber(ARGV[5])
if is_over or (grown > 0 and bytes > tonumber(ARGV[6])) then
  return is_more and 'again' or 'full'
end

if old then remove(id) end
redis.call('ZADD', index, 0, fact.at .. ':' .. id)
redis.call('ZADD', expiry, now + retention, id)
redis.call('HSET', entries, id, text)
redis.call('HSET', facts, id, ARGV[3])
count(fact, 1)
flush()

-- All keys expire together with the last dead letter.
local last = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')[2]
for i = 1, 5 do redis.call('PEXPIREAT', KEYS[i], last) end
return 'saved'
`)

/** id → text */
export const GET: Script = script(`
return is_kept(ARGV[1], clock()) and redis.call('HGET', entries, ARGV[1])
`)

/**
 * from, to, max to check, max to return, max bytes to return, parts that the facts must contain,
 * 'texts' or 'places'
 * → position to continue after ('' at the end), then position and text, position and text …
 */
export const LIST: Script = script(`
local most_checked, most, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local parts, wants_texts = cjson.decode(ARGV[6]), ARGV[7] == 'texts'
if #parts == 0 then most_checked = math.min(most_checked, most) end
local places = redis.call('ZRANGEBYLEX', index, ARGV[1], ARGV[2], 'LIMIT', 0, most_checked)
if #places == 0 then return { '' } end

local ids = {}
for i, place in ipairs(places) do ids[i] = string.sub(place, 18) end
local expires_at = redis.call('ZMSCORE', expiry, unpack(ids))
local fact_texts = #parts > 0 and redis.call('HMGET', facts, unpack(ids))

-- A part is a name and a value in JSON, such as "sink":"loki". Inside of a value the quotes would be
-- escaped, so a text search gives the same result as parsing and is many times faster.
local function fits(i)
  for _, part in ipairs(parts) do
    if not (fact_texts[i] and string.find(fact_texts[i], part, 1, true)) then return false end
  end
  return true
end

local now, bytes, checked, found = clock(), 0, 0, { '' }
repeat
  checked = checked + 1
  if expires_at[checked] and tonumber(expires_at[checked]) > now and fits(checked) then
    local text = not wants_texts and '' or redis.call('HGET', entries, ids[checked])
    if text then
      found[#found + 1] = places[checked]
      found[#found + 1] = text
      bytes = bytes + #text
    end
  end
until checked == #places or #found > 2 * most or bytes >= most_bytes
if checked < #places or #places == most_checked then found[1] = places[checked] end
return found
`)

/** id, token, lease → text and facts, or nothing when it does not exist or another process has claimed it. */
export const CLAIM: Script = script(`
local claim, id, token = KEYS[6], ARGV[1], ARGV[2]
if not is_kept(id, clock()) then return false end
local owner = redis.call('GET', claim)
-- The same token: the client sent the command twice, because it lost the first response.
if owner and owner ~= token then return false end
-- Deletes nothing, so that a server at maxmemory accepts the script: a replay makes room.
redis.call('HDEL', totals, '')
redis.call('SET', claim, token, 'PX', ARGV[3])
return { redis.call('HGET', entries, id), redis.call('HGET', facts, id) }
`)

/** token, lease */
export const RENEW: Script = script(`
if redis.call('GET', KEYS[6]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[6], ARGV[2])
`)

/** token */
export const RELEASE: Script = script(`
if redis.call('GET', KEYS[6]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[6])
`)

/**
 * id, token, facts: the sink has accepted it. It stays when another process has claimed it since, or when
 * it was saved again: then the facts differ.
 */
export const FINISH: Script = script(`
local owner = redis.call('GET', KEYS[6])
if owner and owner ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[6])
if redis.call('HGET', facts, ARGV[1]) ~= ARGV[3] then return 0 end
remove(ARGV[1])
return 1
`)

/** id → 1 when it existed */
export const DELETE: Script = script(`
local was_kept = is_kept(ARGV[1], clock())
return remove(ARGV[1]) and was_kept and 1 or 0
`)

/** max to trim → nothing: call again; or the first position and the totals. */
export const STATS: Script = script(`
if trim(clock(), tonumber(ARGV[1])) then return false end
flush()
local result = redis.call('HGETALL', totals)
table.insert(result, 1, redis.call('ZRANGE', index, 0, 0)[1] or '')
return result
`)

/** to, max to remove → how many, or -1: call again. Expired entries do not count. */
export const CLEANUP: Script = script(`
if trim(clock(), tonumber(ARGV[2])) then return -1 end
local places = redis.call('ZRANGEBYLEX', index, '-', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, place in ipairs(places) do
  remove(string.sub(place, 18))
  redis.call('ZREM', index, place)
end
return #places
`)
