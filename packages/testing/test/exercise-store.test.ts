import type { DeadLetterStore, StoredDeadLetter } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { exerciseStore, recordingDeadLetters, type SkippedScenario } from '../src/index.ts'

/** A location in memory that survives its stores. "Processes" share the dead letters, but not the running sends. */
class SharedPlace {
  readonly #shared = recordingDeadLetters()
  readonly #change: Change

  constructor(change: Change) {
    this.#change = change
  }

  store(): DeadLetterStore {
    let isClosed = false
    const shared = this.#shared
    const guarded = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
      return async (...args: A): Promise<T> => {
        if (!isClosed) return call(...args)
        // Any closed store rejects in the correct way.
        const closed = recordingDeadLetters()
        await closed.close()
        await closed.stats()
        throw new Error('unreachable')
      }
    }
    const plain: DeadLetterStore = {
      save: guarded((deadLetter) => shared.save(deadLetter)),
      get: guarded((id) => shared.get(id)),
      list: guarded((query) => shared.list(query)),
      replay: guarded((id, send) => shared.replay(id, send)),
      replayBatch: guarded((query, send) => shared.replayBatch(query, send)),
      delete: guarded((id) => shared.delete(id)),
      stats: guarded(() => shared.stats()),
      cleanup: guarded((options) => shared.cleanup(options)),
      close: async () => {
        isClosed = true
      },
    }
    return { ...plain, ...this.#change(plain) }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

type Change = (store: DeadLetterStore) => Partial<DeadLetterStore>

const SENDING = 'after a crash while sending, another process can send the dead letter'
const FULL = 'a full store rejects with DLQ_FULL and saves again when it has room'
const skip: readonly SkippedScenario[] = [
  { scenario: SENDING, reason: 'memory cannot crash' },
  { scenario: FULL, reason: 'it has no limit' },
]

/** Returns the suite as a list, to be run one by one. */
function collect(change: Change): ReadonlyMap<string, () => Promise<void>> {
  const tests = new Map<string, () => Promise<void>>()
  exerciseStore({
    runner: {
      describe: (_, define) => define(),
      it: Object.assign((name: string, run: () => Promise<void>) => void tests.set(name, run), {
        skip: () => undefined,
      }),
    },
    name: 'under test',
    open: () => new SharedPlace(change),
    crash: () => undefined,
    skip,
    deadline: '1s',
  })
  return tests
}

async function failures(change: Change): Promise<readonly string[]> {
  const failed: string[] = []
  for (const [name, run] of collect(change)) await run().catch(() => failed.push(name))
  return failed
}

const BYTES = 'a saved dead letter is returned byte for byte'
const ABSENT = 'absent fields stay absent'
const CHANGED = 'changes after the call of save are not saved'
const REPLACES = 'the same id replaces'
const LAST = 'the last save of an id wins, whatever its time'
const CLOSED = 'after close every call rejects with DLQ_CLOSED'
const FILTERS = 'lists matching dead letters, oldest first, for every filter'
const PAGES = 'pages neither repeat nor skip while others are saved and deleted'
const CURSOR = 'a foreign cursor is rejected'
const STATS = 'stats count the stored dead letters, also after deletes'
const FORGETS = 'a replay deletes only after send resolved'
const KEEPS = 'a replay whose send rejects keeps the dead letter'
const TWICE = 'two concurrent replays send once'
const TWO_SEND = 'two processes that replay concurrently send once'
const AGAIN = 'a dead letter that is saved again while it is sent is kept'
const OLDEST = 'a batch is replayed oldest first, one after the other'
const COUNTS = 'a batch counts and keeps failed dead letters'
const AT_ONCE = 'a batch replays with the given concurrency'
const DELETE = 'delete removes one dead letter, once'
const CLEANUP = 'cleanup removes dead letters saved before the given time'
const REOPENED = 'every acknowledged dead letter exists after close'
const CRASHED = 'every acknowledged dead letter exists after a crash'
const SAVING = 'a crash while saving loses no acknowledged dead letter'
const TWO = 'two processes see the changes of the other'
const HUNDRED = 'a hundred concurrent saves by two processes are all kept'

const text = (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString('utf8'))
const withEvent = (one: StoredDeadLetter, event: Partial<StoredDeadLetter['event']>) => ({
  ...one,
  event: { ...one.event, ...event },
})

/** A fault of the store, and the scenarios that must detect it. */
const BREAKS: readonly (readonly [string, Change, readonly string[]])[] = [
  [
    'bytes become text',
    (s) => ({ save: (d) => s.save(withEvent(d, { bytes: text(d.event.bytes) })) }),
    [BYTES],
  ],
  [
    'headers lose names that JavaScript uses',
    (s) => ({ save: (d) => s.save(withEvent(d, { headers: Object.assign({}, d.event.headers) })) }),
    [BYTES],
  ],
  [
    'absent fields become empty',
    (s) => ({ save: (d) => s.save({ ...d, job: d.job ?? '' }) }),
    [ABSENT, FILTERS],
  ],
  [
    'it saves later',
    (s) => ({
      save: async (d) => {
        await Promise.resolve()
        await s.save(d)
      },
    }),
    [CHANGED],
  ],
  [
    'the first save wins',
    (s) => ({
      save: async (d) => {
        if ((await s.get(d.id)) === undefined) await s.save(d)
      },
    }),
    [REPLACES, LAST],
  ],
  [
    'the latest time wins',
    (s) => ({
      save: async (d) => {
        if (((await s.get(d.id))?.savedAt ?? 0) <= d.savedAt) await s.save(d)
      },
    }),
    [LAST],
  ],
  ['close has no effect', () => ({ close: () => Promise.resolve() }), [CLOSED]],
  [
    'any one field of a filter is enough',
    (s) => ({
      list: ({ filter = {}, ...q }) =>
        s.list({ ...q, filter: filter.sink === undefined ? filter : { sink: filter.sink } }),
    }),
    [FILTERS],
  ],
  [
    'an entry saved exactly at the given time counts as before it',
    (s) => ({ cleanup: ({ savedBefore }) => s.cleanup({ savedBefore: savedBefore + 1 }) }),
    [CLEANUP],
  ],
  ['pages by number', byNumber, [PAGES, CURSOR]],
  ['a cursor contains only the time', byTime, [PAGES]],
  [
    'deleted dead letters are counted',
    (s) => ({ stats: async () => ({ ...(await s.stats()), count: 5 }) }),
    [STATS],
  ],
  [
    'it deletes before it sends',
    (s) => ({
      replay: async (id, send) => {
        const d = await s.get(id)
        if (!(await s.delete(id)) || !d) return false
        await send(d)
        return true
      },
    }),
    [FORGETS, KEEPS],
  ],
  [
    'it deletes failed dead letters',
    (s) => ({ replay: (id, send) => s.replay(id, (d) => send(d).catch(() => undefined)) }),
    [KEEPS],
  ],
  [
    'it rejects with another error',
    (s) => ({
      replay: (id, send) =>
        s.replay(id, send).catch(() => Promise.reject(new Error('replay failed'))),
    }),
    [KEEPS],
  ],
  ['replays are not claimed', unclaimed, [TWICE, TWO_SEND]],
  [
    'it deletes by id',
    (s) => ({
      replay: async (id, send) => {
        const is = await s.replay(id, send)
        if (is) await s.delete(id)
        return is
      },
    }),
    [AGAIN],
  ],
  [
    'newest first',
    (s) => ({
      replayBatch: async (q, send) => {
        const page = await s.list({ ...q, limit: 1_000 })
        for (const d of page.deadLetters.toReversed().slice(0, q.limit)) await s.replay(d.id, send)
        return { replayed: Math.min(q.limit, page.deadLetters.length), failed: 0 }
      },
    }),
    [OLDEST],
  ],
  [
    'all are sent concurrently',
    (s) => ({ replayBatch: (q, send) => s.replayBatch({ ...q, concurrency: 10 }, send) }),
    [OLDEST, AT_ONCE],
  ],
  [
    'a batch stops at the first failure',
    (s) => ({
      replayBatch: async (q, send) => {
        let failed = 0
        const answer = await s.replayBatch(q, (d) =>
          failed > 0
            ? Promise.reject(new Error('no'))
            : send(d).catch((e: unknown) => {
                failed += 1
                throw e
              }),
        )
        return answer
      },
    }),
    [COUNTS],
  ],
  [
    'delete always returns true',
    (s) => ({
      delete: async (id) => {
        await s.delete(id)
        return true
      },
    }),
    [DELETE],
  ],
  ['delete does nothing', () => ({ delete: () => Promise.resolve(true) }), [DELETE, STATS]],
  ['it acknowledges before it saves', unkept, [CRASHED, REOPENED, SAVING, TWO, HUNDRED]],
]

function byNumber(store: DeadLetterStore): Partial<DeadLetterStore> {
  return {
    list: async ({ cursor, limit, filter }) => {
      const { deadLetters } = await store.list({ limit: 1_000, ...(filter ? { filter } : {}) })
      const from = Number(cursor ?? 0)
      const page = deadLetters.slice(from, from + limit)
      const isMore = from + limit < deadLetters.length
      return { deadLetters: page, nextCursor: isMore ? String(from + limit) : undefined }
    },
  }
}

function byTime(store: DeadLetterStore): Partial<DeadLetterStore> {
  return {
    list: async ({ cursor, limit, filter = {} }) => {
      const from = cursor === undefined ? {} : { savedAfter: Number(cursor) }
      const { deadLetters, nextCursor } = await store.list({
        limit,
        filter: { ...filter, ...from },
      })
      return { deadLetters, nextCursor: nextCursor && String(deadLetters.at(-1)?.savedAt) }
    },
  }
}

function unclaimed(store: DeadLetterStore): Partial<DeadLetterStore> {
  return {
    replay: async (id, send) => {
      const deadLetter = await store.get(id)
      if (deadLetter === undefined) return false
      await send(deadLetter)
      return store.delete(id)
    },
  }
}

/** Keeps every third dead letter only in the process. */
function unkept(store: DeadLetterStore): Partial<DeadLetterStore> {
  let saves = 0
  return { save: (d) => (saves++ % 3 === 2 ? Promise.resolve() : store.save(d)) }
}

describe('exerciseStore', () => {
  it('passes a store that keeps all guarantees', async () => {
    expect(await failures(() => ({}))).toEqual([])
  })

  it.each(BREAKS)('detects that %s', async (_, change, expected) => {
    expect(await failures(change)).toEqual(expect.arrayContaining([...expected]))
  })

  it('has a broken store for every scenario, except for variants of other scenarios', () => {
    const covered = new Set(BREAKS.flatMap(([, , expected]) => expected))
    const names = [...collect(() => ({})).keys()]
    expect(names.filter((name) => !covered.has(name))).toEqual([
      'an unknown id is not an error',
      'pages end where the list ends',
      'a dead letter that is deleted while it is sent stays deleted',
      'concurrent deletes remove it once',
      'cleanup uses the time of the last save of an id',
    ])
  })

  it('throws when an option is missing and its scenario is not skipped', () => {
    const runner = { describe: () => undefined, it: () => undefined }
    const open = () => new SharedPlace(() => ({}))
    expect(() => exerciseStore({ runner, name: 'x', open, skip })).toThrow(/"crash" is missing/)
    const crash = () => undefined
    expect(() => exerciseStore({ runner, name: 'x', open, crash })).toThrow(/"bounded" is missing/)
    const unknown = [...skip, { scenario: 'no such', reason: 'none' }]
    expect(() => exerciseStore({ runner, name: 'x', open, crash, skip: unknown })).toThrow(
      /no such/,
    )
    const silent = [{ scenario: FULL, reason: ' ' }]
    expect(() => exerciseStore({ runner, name: 'x', open, crash, skip: silent })).toThrow(
      /a reason/,
    )
  })
})
