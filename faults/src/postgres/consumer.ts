/** A consumer process: `consume` on the transport under test, with its inbox and a separate history. */
import { postgres, postgresInbox } from '@redrive/postgres'
import { type Consumer, consume, type Inbox, onEvent } from '@redrive/runtime'
import { Pool, type PoolClient, type QueryResult } from 'pg'
import { dieAt, live, RULES } from '../harness/consumer.ts'
import { addEffect, countRun, openDatabase } from '../harness/effects.ts'
import { handlerOf } from '../harness/handler.ts'
import { tamper } from '../harness/clock.ts'
import { openHistory } from '../evidence/history.ts'
import type { Failpoint, PostgresConsumerOptions } from './consumer-options.ts'
import { type QueryName, type Watch, watchQueries } from './queries.ts'

const options = JSON.parse(process.argv[2] ?? '') as PostgresConsumerOptions
const { name, run, queues, policy, failpoint, databaseUrl } = options
const history = openHistory(options.folder, name)
if (options.clock !== undefined) tamper(options.clock)
const die = (where: string) => dieAt(history, where)

/**
 * One connection for the transport of each queue, one that listens, one for maintenance, and one
 * for each handler.
 */
const pool = new Pool({
  connectionString: databaseUrl,
  max: queues.length + 2 + (policy.concurrency ?? 50),
  connectionTimeoutMillis: 10_000,
})
pool.on('error', () => undefined)
pool.on('connect', (client) => watchQueries(client as PoolClient, watch))
const books = openDatabase(options.booksUrl ?? databaseUrl, { connections: 3 })

const durations = new Map<QueryName, number[]>()

function note(query: QueryName, tookMs: number): void {
  const all = durations.get(query) ?? []
  durations.set(query, all)
  all.push(Math.round(tookMs * 100) / 100)
}

/** An empty claim leaves nothing half done, so this waits for a claim with rows. */
const isMeant = (query: QueryName, { rows }: QueryResult) => query !== 'claim' || rows.length > 0

let hasStopped = false

function fail(query: QueryName, when: Failpoint['when']): void {
  if (failpoint?.query !== query || failpoint.when !== when) return
  if (failpoint.what !== 'stop') die(`${query} ${when}`)
  if (hasStopped) return
  hasStopped = true
  history.write({ what: 'stops', where: `${query} ${when}` })
  process.kill(process.pid, 'SIGSTOP')
}

const unnamed = new Set<string>()

const watch: Watch = {
  before(names, { text }) {
    if (names.length === 0 && !unnamed.has(text)) {
      unnamed.add(text)
      history.write({ what: 'event', type: 'unnamed_query', note: text })
    }
    for (const query of names) fail(query, 'before')
  },
  after(names, result, tookMs) {
    for (const query of names) {
      note(query, tookMs)
      if (isMeant(query, result)) fail(query, 'after')
    }
  },
}

const inbox = postgresInbox({ pool })

/** The inbox under test. Its result is recorded before any other code gets it. */
const witnessed: Inbox<PoolClient> = {
  ...inbox,
  async handle(entry, work, attempt) {
    const answer = await inbox.handle(entry, work, attempt)
    if (answer !== 'conflict') {
      history.write({ what: 'effect', id: entry.key, isNew: answer === 'handled' })
    }
    return answer
  },
}

const start = (queue: string): Promise<Consumer> =>
  consume(
    postgres({ pool, queue, lease: options.lease, order: policy.order ?? 'none' }),
    handlerOf<PoolClient>({
      ...options,
      history,
      die,
      countRun: (id) => countRun(books, run, id),
      takeEffect: (id, tx) => addEffect(tx, run, id, name),
    }),
    { ...policy, classify: RULES, inbox: witnessed, logger: 'off' },
  )

/** Records completions. Only the owner of a row may get the confirmation that it is done. */
onEvent((event) => {
  if (event.type !== 'enacted' || event.enactment.kind !== 'done') return
  if (event.decision.kind === 'settle') history.write({ what: 'settled', id: event.deliveryId })
})

await live({
  history,
  start: () => Promise.all(queues.map(start)),
  measure() {
    for (const [query, ms] of durations) history.write({ what: 'queries', name: query, ms })
    durations.clear()
  },
  end: () => Promise.all([pool.end(), books.end()]),
})
