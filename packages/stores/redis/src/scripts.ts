import { createHash } from 'node:crypto'

/**
 * One script for each thing that is done: it happens as a whole or not at all, whoever else is at work.
 * A script stops the whole server while it runs, so each does a bounded piece and says how far it got.
 *
 * Five keys, which every script is given in this order:
 * - `index`, a sorted set of places (moment and id), all with score 0: in the order of lists
 * - `expiry`, a sorted set of ids by the moment at which they are over
 * - `entries`, a hash: id → the dead letter as text
 * - `facts`, a hash: id → what filters and totals need of it, so that neither reads the text
 * - `totals`, a hash of counts
 * An id is in the first four or in none. All five are over together, with the last dead letter in them.
 */
export interface Script {
  readonly text: string
  readonly sha: string
}

// The server's clock decides what is over: those of the processes do not agree.
const SHARED = `
local index, expiry, entries, facts, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Counts are written once for all that a script does, by \`flush\`.
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
  local over = redis.call('ZSCORE', expiry, id)
  return over and tonumber(over) > now
end

-- Deletions come first. A server at maxmemory refuses the first write of a script when that could
-- need memory, as a count could; what follows a deletion it lets through.
local function forget(id)
  local fact = redis.call('HGET', facts, id)
  redis.call('ZREM', expiry, id)
  redis.call('HDEL', entries, id)
  -- A key that was evicted must not make anybody ask again for ever.
  if not fact then return false end
  fact = cjson.decode(fact)
  redis.call('ZREM', index, fact.at .. ':' .. id)
  redis.call('HDEL', facts, id)
  count(fact, -1)
  return true
end

-- True: there may be more.
local function trim(now, most)
  local gone = redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, most)
  for _, id in ipairs(gone) do forget(id) end
  return #gone == most
end
`

function script(body: string): Script {
  const text = `${SHARED}
local function main()
${body}
end
local answer = main()
flush()
return answer`
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** retention, id, facts, text, most entries, most bytes, most to trim → 'saved', 'full' or 'again'. */
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

if old then forget(id) end
redis.call('ZADD', index, 0, fact.at .. ':' .. id)
redis.call('ZADD', expiry, now + retention, id)
redis.call('HSET', entries, id, text)
redis.call('HSET', facts, id, ARGV[3])
count(fact, 1)
flush()

-- When nobody is left to trim, everything goes at once.
local last = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')[2]
for i = 1, 5 do redis.call('PEXPIREAT', KEYS[i], last) end
return 'saved'
`)

/** id → text */
export const GET: Script = script(`
return is_kept(ARGV[1], clock()) and redis.call('HGET', entries, ARGV[1])
`)

/**
 * from, to, most to look at, most to answer, most bytes to answer, parts of the facts that must be there,
 * 'texts' or 'places'
 * → place to go on after ('' at the end), then place and text, place and text …
 */
export const LIST: Script = script(`
local most_looked, most, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local parts, wants_texts = cjson.decode(ARGV[6]), ARGV[7] == 'texts'
if #parts == 0 then most_looked = math.min(most_looked, most) end
local places = redis.call('ZRANGEBYLEX', index, ARGV[1], ARGV[2], 'LIMIT', 0, most_looked)
if #places == 0 then return { '' } end

local ids = {}
for i, place in ipairs(places) do ids[i] = string.sub(place, 18) end
local over = redis.call('ZMSCORE', expiry, unpack(ids))
local told = #parts > 0 and redis.call('HMGET', facts, unpack(ids))

-- A part is a name and a value as JSON writes them, such as "sink":"loki". Inside of a value it would
-- have other quotes, so finding the text is as good as reading it, and many times as fast.
local function fits(i)
  for _, part in ipairs(parts) do
    if not (told[i] and string.find(told[i], part, 1, true)) then return false end
  end
  return true
end

local now, bytes, looked, found = clock(), 0, 0, { '' }
repeat
  looked = looked + 1
  if over[looked] and tonumber(over[looked]) > now and fits(looked) then
    local text = not wants_texts and '' or redis.call('HGET', entries, ids[looked])
    if text then
      found[#found + 1] = places[looked]
      found[#found + 1] = text
      bytes = bytes + #text
    end
  end
until looked == #places or #found > 2 * most or bytes >= most_bytes
if looked < #places or #places == most_looked then found[1] = places[looked] end
return found
`)

/** id, token, lease → text and facts, or nothing when it is gone or someone else's. */
export const CLAIM: Script = script(`
local claim, id, token = KEYS[6], ARGV[1], ARGV[2]
if not is_kept(id, clock()) then return false end
local owner = redis.call('GET', claim)
-- Ours: the client has asked twice, because it lost the first answer.
if owner and owner ~= token then return false end
-- A deletion of nothing, for a server at maxmemory: a replay is what makes room.
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
 * id, token, facts: the sink has it. It stays when someone else has claimed it since, or when it was
 * saved again: then the facts are others.
 */
export const FINISH: Script = script(`
local owner = redis.call('GET', KEYS[6])
if owner and owner ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[6])
if redis.call('HGET', facts, ARGV[1]) ~= ARGV[3] then return 0 end
forget(ARGV[1])
return 1
`)

/** id → 1 when it was there */
export const DELETE: Script = script(`
local was_kept = is_kept(ARGV[1], clock())
return forget(ARGV[1]) and was_kept and 1 or 0
`)

/** most to trim → nothing: ask again; or the first place and the totals. */
export const STATS: Script = script(`
if trim(clock(), tonumber(ARGV[1])) then return false end
flush()
local answer = redis.call('HGETALL', totals)
table.insert(answer, 1, redis.call('ZRANGE', index, 0, 0)[1] or '')
return answer
`)

/** to, most to remove → how many, or -1: ask again. What is over by itself does not count. */
export const CLEANUP: Script = script(`
if trim(clock(), tonumber(ARGV[2])) then return -1 end
local places = redis.call('ZRANGEBYLEX', index, '-', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, place in ipairs(places) do
  forget(string.sub(place, 18))
  redis.call('ZREM', index, place)
end
return #places
`)
