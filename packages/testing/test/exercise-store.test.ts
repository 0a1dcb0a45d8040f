import type { DeadLetterStore, StoredDeadLetter } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { exerciseStore, recordingDeadLetters, type SkippedScenario } from '../src/index.ts'

/** A place in memory that survives its stores: "processes" share what is kept, not who is sending. */
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
        // Any closed store: it rejects as it must.
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

const SENDING = 'a crash while sending leaves the dead letter to others'
const FULL = 'a full store rejects with DLQ_FULL and takes more once there is room'
const skip: readonly SkippedScenario[] = [
  { scenario: SENDING, reason: 'what is in memory cannot crash' },
  { scenario: FULL, reason: 'it has no bound' },
]

/** The suite as a list, to be run one by one. */
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

const BYTES = 'what is saved comes back byte for byte'
const ABSENT = 'what is absent stays absent'
const CHANGED = 'what changes after save was called is not saved'
const REPLACES = 'the same id replaces'
const LAST = 'the last save of an id wins, whatever time it carries'
const CLOSED = 'after close every call rejects with DLQ_CLOSED'
const FILTERS = 'lists oldest first what fits every filter'
const PAGES = 'pages neither repeat nor skip while others are saved and deleted'
const CURSOR = 'a cursor that is not its own is refused'
const STATS = 'stats say what is there, also after deletes'
const FORGETS = 'a replay forgets only after send resolved'
const KEEPS = 'a replay whose send rejects keeps the dead letter'
const TWICE = 'two replays at once send once'
const TWO_SEND = 'two processes that replay at once send once'
const AGAIN = 'what is saved again while it is sent is kept'
const OLDEST = 'a batch is replayed oldest first, one after the other'
const COUNTS = 'a batch counts and keeps what failed'
const AT_ONCE = 'a batch replays so many at once'
const DELETE = 'delete takes one away, once'
const CLEANUP = 'cleanup takes away what was saved before the moment'
const REOPENED = 'everything acknowledged is there after close'
const CRASHED = 'everything acknowledged is there after a crash'
const SAVING = 'a crash while saving loses nothing acknowledged'
const TWO = 'two processes see what the other does'
const HUNDRED = 'a hundred saves at once by two processes are all kept'

const text = (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString('utf8'))
const withEvent = (one: StoredDeadLetter, event: Partial<StoredDeadLetter['event']>) => ({
  ...one,
  event: { ...one.event, ...event },
})

/** What is wrong with the store, and a scenario that must notice. */
const BREAKS: readonly (readonly [string, Change, readonly string[]])[] = [
  [
    'bytes become text',
    (s) => ({ save: (d) => s.save(withEvent(d, { bytes: text(d.event.bytes) })) }),
    [BYTES],
  ],
  [
    'headers lose names of the language',
    (s) => ({ save: (d) => s.save(withEvent(d, { headers: Object.assign({}, d.event.headers) })) }),
    [BYTES],
  ],
  [
    'what is absent becomes empty',
    (s) => ({ save: (d) => s.save({ ...d, job: d.job ?? '' }) }),
    [ABSENT, FILTERS],
  ],
  [
    'it writes later',
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
  ['close is forgotten', () => ({ close: () => Promise.resolve() }), [CLOSED]],
  [
    'filters are looked at one by one',
    (s) => ({
      list: ({ filter = {}, ...q }) =>
        s.list({ ...q, filter: filter.sink === undefined ? filter : { sink: filter.sink } }),
    }),
    [FILTERS],
  ],
  [
    'a moment counts as before itself',
    (s) => ({ cleanup: ({ savedBefore }) => s.cleanup({ savedBefore: savedBefore + 1 }) }),
    [CLEANUP],
  ],
  ['pages by number', byNumber, [PAGES, CURSOR]],
  ['a cursor knows only the time', byTime, [PAGES]],
  [
    'deletes are counted',
    (s) => ({ stats: async () => ({ ...(await s.stats()), count: 5 }) }),
    [STATS],
  ],
  [
    'it forgets before it sends',
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
    'it forgets what failed',
    (s) => ({ replay: (id, send) => s.replay(id, (d) => send(d).catch(() => undefined)) }),
    [KEEPS],
  ],
  [
    'an error of its own',
    (s) => ({
      replay: (id, send) =>
        s.replay(id, send).catch(() => Promise.reject(new Error('replay failed'))),
    }),
    [KEEPS],
  ],
  ['nobody claims', unclaimed, [TWICE, TWO_SEND]],
  [
    'it forgets by id',
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
        const page = await s.list({ ...q, most: 1_000 })
        for (const d of page.deadLetters.toReversed().slice(0, q.most)) await s.replay(d.id, send)
        return { replayed: Math.min(q.most, page.deadLetters.length), failed: 0 }
      },
    }),
    [OLDEST],
  ],
  [
    'all at once',
    (s) => ({ replayBatch: (q, send) => s.replayBatch({ ...q, atOnce: 10 }, send) }),
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
    'delete always says yes',
    (s) => ({
      delete: async (id) => {
        await s.delete(id)
        return true
      },
    }),
    [DELETE],
  ],
  ['delete does nothing', () => ({ delete: () => Promise.resolve(true) }), [DELETE, STATS]],
  ['acknowledged before it is kept', unkept, [CRASHED, REOPENED, SAVING, TWO, HUNDRED]],
]

function byNumber(store: DeadLetterStore): Partial<DeadLetterStore> {
  return {
    list: async ({ after, most, filter }) => {
      const { deadLetters } = await store.list({ most: 1_000, ...(filter ? { filter } : {}) })
      const from = Number(after ?? 0)
      const page = deadLetters.slice(from, from + most)
      const isMore = from + most < deadLetters.length
      return { deadLetters: page, next: isMore ? String(from + most) : undefined }
    },
  }
}

function byTime(store: DeadLetterStore): Partial<DeadLetterStore> {
  return {
    list: async ({ after, most, filter = {} }) => {
      const from = after === undefined ? {} : { savedAfter: Number(after) }
      const { deadLetters, next } = await store.list({ most, filter: { ...filter, ...from } })
      return { deadLetters, next: next && String(deadLetters.at(-1)?.savedAt) }
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

/** Every third is kept in the process only. */
function unkept(store: DeadLetterStore): Partial<DeadLetterStore> {
  let saves = 0
  return { save: (d) => (saves++ % 3 === 2 ? Promise.resolve() : store.save(d)) }
}

describe('exerciseStore', () => {
  it('passes for a store that keeps its promises', async () => {
    expect(await failures(() => ({}))).toEqual([])
  })

  it.each(BREAKS)('notices when %s', async (_, change, expected) => {
    expect(await failures(change)).toEqual(expect.arrayContaining([...expected]))
  })

  it('every scenario is noticed by someone, or is a variant of one that is', () => {
    const covered = new Set(BREAKS.flatMap(([, , expected]) => expected))
    const names = [...collect(() => ({})).keys()]
    expect(names.filter((name) => !covered.has(name))).toEqual([
      'an unknown id is no error',
      'pages end where the list ends',
      'what is deleted while it is sent stays deleted',
      'deleting at once takes it away',
      'cleanup goes by the last save of an id',
    ])
  })

  it('refuses to leave out silently what a store cannot do', () => {
    const runner = { describe: () => undefined, it: () => undefined }
    const open = () => new SharedPlace(() => ({}))
    expect(() => exerciseStore({ runner, name: 'x', open, skip })).toThrow(/crash is missing/)
    const crash = () => undefined
    expect(() => exerciseStore({ runner, name: 'x', open, crash })).toThrow(/bounded is missing/)
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
