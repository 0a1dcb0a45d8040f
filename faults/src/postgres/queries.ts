import type { PoolClient, QueryResult } from 'pg'

/** A query as the consumer sent it. */
export interface SentQuery {
  readonly text: string
  readonly values: readonly unknown[]
  /** Queries sent before it in the same transaction. */
  readonly trail: string
}

/** Results that the transport sends in one turn, by the position of the parameter. */
const DONE = 0
const CHANGES = 2
const MOST = 4

const isTurn = ({ text }: SentQuery) => text.includes('redrive.outbox_turn(')

const isStep = (text: string) => /outbox_maintenance_step\(|'statement_timeout'/.test(text)
const isEffect = (text: string) => text.includes('insert into faults_effects')
const isForget = (text: string) => text.includes('redrive.inbox_forget(')

/** Matches a turn that hands a row off to this destination. */
const handsOff =
  (place: string, reason = '') =>
  (sent: SentQuery) => {
    const changes = isTurn(sent) ? sent.values[CHANGES] : undefined
    if (typeof changes !== 'string') return false
    return changes.includes(`"place":"${place}"`) && changes.includes(reason)
  }

/** All queries of a consumer. One statement may count as several, because a turn combines them. */
export type QueryName =
  | 'isolation'
  | 'ready'
  | 'clock'
  | 'retain'
  | 'maintain'
  | 'listen'
  | 'ping'
  | 'claim'
  | 'complete'
  | 'hand-off retry'
  | 'hand-off dead-letter'
  | 'hand-off quarantine'
  | 'hand-off give-back'
  | 'heartbeat'
  | 'inbox begin'
  | 'inbox enter'
  | 'inbox seen'
  | 'inbox effect'
  | 'inbox commit'
  | 'inbox rollback'
  | 'inbox forget'
  | 'inbox forget commit'

const NAMED: Readonly<Record<QueryName, (sent: SentQuery) => boolean>> = {
  isolation: ({ text }) => text.includes(`current_setting('transaction_isolation')`),
  ready: ({ text }) => text.includes('to_regprocedure('),
  clock: ({ text }) => text.includes('pg_catalog.clock_timestamp()'),
  retain: ({ text }) => text.includes('redrive.outbox_retain('),
  maintain: ({ text, trail }) =>
    /redrive\.outbox_maintenance_step\(|'redrive\.outbox_' \|\||delete from redrive\.replay_confirmation/.test(
      text,
    ) ||
    isStep(text) ||
    (text === 'commit' && isStep(trail)) ||
    text === 'begin isolation level read committed',
  listen: ({ text }) => text.startsWith('listen '),
  ping: ({ text, trail }) => text === 'select 1' && trail === '',
  claim: (sent) => isTurn(sent) && Number(sent.values[MOST]) > 0,
  complete: (sent) => isTurn(sent) && (sent.values[DONE] as readonly string[]).length > 0,
  'hand-off retry': handsOff('retry'),
  'hand-off dead-letter': handsOff('failed', 'terminal'),
  'hand-off quarantine': handsOff('failed', 'same_failure_repeated'),
  'hand-off give-back': handsOff('returned'),
  heartbeat: ({ text }) => text.includes('redrive.outbox_keep('),
  'inbox begin': ({ text }) => text === 'begin' || text.startsWith('begin; set local idle_'),
  'inbox enter': ({ text }) => text.includes('insert into redrive.event_handled'),
  'inbox seen': ({ text }) => text.includes('select fingerprint'),
  'inbox effect': ({ text }) => isEffect(text),
  'inbox commit': ({ text, trail }) => text === 'commit' && !isForget(trail) && !isStep(trail),
  'inbox rollback': ({ text }) => text === 'rollback',
  'inbox forget': ({ text }) => isForget(text),
  'inbox forget commit': ({ text, trail }) => text === 'commit' && isForget(trail),
}

/** Returns the names of a query; none for an unknown one. */
export function namesOf(sent: SentQuery): readonly QueryName[] {
  return (Object.keys(NAMED) as QueryName[]).filter((name) => NAMED[name](sent))
}

export interface Watch {
  before(names: readonly QueryName[], sent: SentQuery): void
  /** Called after the response and before other code gets it. */
  after(names: readonly QueryName[], result: QueryResult, tookMs: number): void
}

type Query = (...args: readonly unknown[]) => unknown

/** Watches queries between the code under test and the client library; both run unchanged. */
export function watchQueries(client: PoolClient, watch: Watch): void {
  const query = client.query.bind(client) as Query
  let trail = ''
  const watched: Query = (...args) => {
    const sent = { ...sentIn(args), trail }
    trail = trailAfter(trail, sent.text)
    const names = namesOf(sent)
    watch.before(names, sent)
    const startedAt = performance.now()
    const seen = (result: unknown) =>
      watch.after(names, result as QueryResult, performance.now() - startedAt)
    const answer = query(...withCallback(args, seen))
    if (!(answer instanceof Promise)) return answer
    return answer.then((result: unknown) => {
      seen(result)
      return result
    })
  }
  client.query = watched as PoolClient['query']
}

/** Returns the queries from the begin to the end of a transaction; empty outside of one. */
function trailAfter(trail: string, text: string): string {
  if (/^begin\b/.test(text)) return text
  return trail === '' || text === 'commit' || text === 'rollback' ? '' : `${trail}; ${text}`
}

function sentIn([first, second]: readonly unknown[]): Omit<SentQuery, 'trail'> {
  if (typeof first === 'string') return { text: first, values: valuesIn(second) }
  const { text = '', values } = first as { readonly text?: string; readonly values?: unknown }
  return { text, values: valuesIn(values ?? second) }
}

const valuesIn = (values: unknown): readonly unknown[] => (Array.isArray(values) ? values : [])

/** `pool.query` uses a callback; it is called after ours. */
function withCallback(
  args: readonly unknown[],
  seen: (result: unknown) => void,
): readonly unknown[] {
  const last = args.at(-1)
  if (typeof last !== 'function') return args
  const callback = last as (error: unknown, result: unknown) => void
  const wrapped = (error: unknown, result: unknown) => {
    if (error === null || error === undefined) seen(result)
    callback(error, result)
  }
  return [...args.slice(0, -1), wrapped]
}
