import { randomUUID } from 'node:crypto'
import type { FailureRecord } from '@redrive/core'
import { describe, expect, test } from 'vitest'
import { catalog, type DeadLetterQuery } from '../src/index.ts'
import { compileDeadLetters } from '../src/read/compile.ts'
import { dead, ListSource, migrated, NOW } from './rig.ts'

const pool = await migrated('redrive_catalog_failures')
const made = catalog({ pool })

const STACK = '    at charge (/srv/orders/src/payments.ts:42:7)\n    at run (node:internal/x:1:1)'

const record = (fields: Partial<FailureRecord>): FailureRecord => ({
  number: 1,
  at: NOW,
  waitedMs: 0,
  class: 'unknown',
  signature: '2-00000000000000cc',
  code: undefined,
  type: undefined,
  message: 'total is undefined',
  counted: true,
  ...fields,
})

/** Returns a dead letter with this history. */
function failed(history: readonly FailureRecord[], runs: number, id: string = randomUUID()) {
  const one = dead({ delivery: { id } })
  const attempts = history.filter(({ counted }) => counted).length
  const cycle = { ...one.delivery.cycle, attempts, runs, history }
  return { ...one, delivery: { ...one.delivery, cycle } }
}

const signed = (signature: string) => [record({ signature, type: 'TypeError' })]

const CHARGE = {
  ...failed(signed('2-0000000000000001'), 1, 'charge'),
  handler: 'charge',
  stack: STACK,
}
const REFUND = { ...failed(signed('2-0000000000000002'), 1, 'refund'), handler: 'refund' }
const OLD = failed([record({ signature: '2-0000000000000003' })], 1, 'old')
const KNOWN_HISTORY = [record({ signature: '2-0000000000000004', class: 'business', type: 'Late' })]
const KNOWN = { ...failed(KNOWN_HISTORY, 1, 'known'), handler: 'refund', stack: STACK }

await made.ingest(new ListSource([CHARGE, REFUND, OLD, KNOWN], 'payments'), { handler: 'legacy' })

async function found(query: DeadLetterQuery): Promise<readonly string[]> {
  const { deadLetters } = await made.deadLetters({
    sources: ['payments'],
    after: NOW - 1,
    ...query,
  })
  return deadLetters.map(({ messageId }) => messageId).toSorted()
}

async function groupOf(messageId: string) {
  const { deadLetters } = await made.deadLetters({ key: messageId })
  return made.group(deadLetters[0]?.group ?? '')
}

describe('the handler of a dead letter', () => {
  test('is the one it names, and otherwise that of its source', async () => {
    const { deadLetters } = await made.deadLetters({ sources: ['payments'], after: NOW - 1 })
    const byId = Object.fromEntries(deadLetters.map((one) => [one.messageId, one.handler]))
    expect(byId).toEqual({ charge: 'charge', refund: 'refund', known: 'refund', old: 'legacy' })
    const [first] = deadLetters
    expect(await made.deadLetter(first?.id ?? '')).toMatchObject({ handler: first?.handler })
  })

  test('is a filter of dead letters, alone and with other filters', async () => {
    expect(await found({ handler: 'refund' })).toEqual(['known', 'refund'])
    expect(await found({ handler: 'legacy' })).toEqual(['old'])
    expect(await found({ handler: 'refund', class: 'business' })).toEqual(['known'])
    expect(await found({ handler: 'refund', key: 'refund' })).toEqual(['refund'])
    expect(await found({ handler: 'charge', key: 'refund' })).toEqual([])
    expect(await found({ handler: 'refund', texts: ['undefined'] })).toEqual(['known', 'refund'])
    const { id = '' } = (await groupOf('charge')) ?? {}
    expect(await found({ handler: 'charge', groups: [id] })).toEqual(['charge'])
    expect(await found({ handler: 'refund', groups: [id] })).toEqual([])
    expect(await found({ handler: 'refund', sources: ['other'] })).toEqual([])
  })

  test('is a filter of groups', async () => {
    const { groups } = await made.groups({ handler: 'refund' })
    expect(groups.map(({ signature }) => signature).toSorted()).toEqual([
      '2-0000000000000002',
      '2-0000000000000004',
    ])
  })

  test('as a filter reads an index of the groups, not all dead letters', async () => {
    const { text, values } = compileDeadLetters({ handler: 'refund', limit: 5 })
    const client = await pool.connect()
    await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off')
    const { rows: plan } = await client.query(`explain ${text}`, [...values])
    await client.query('rollback')
    client.release()
    expect(JSON.stringify(plan)).toContain('group_id_status_last_failed_at_id_idx')
  })
})

describe('a group', () => {
  test('explains an unknown failure by type, handler and frame', async () => {
    const group = await groupOf('charge')
    const frame = 'charge payments.ts'
    expect(group).toMatchObject({ errorType: 'TypeError', handler: 'charge', frame })
    expect(await made.whyGrouped(group?.id ?? '')).toMatchObject({
      shared: { type: 'TypeError', handler: 'charge', frame, class: 'unknown' },
      unknown: [],
    })
  })

  test('does not know the frame without a stack trace', async () => {
    const why = await made.whyGrouped((await groupOf('refund'))?.id ?? '')
    expect(why?.shared).toMatchObject({ type: 'TypeError', handler: 'refund', frame: undefined })
    expect(why?.unknown).toEqual(['frame'])
  })

  test('of a known failure has no frame, because its signature has none', async () => {
    const why = await made.whyGrouped((await groupOf('known'))?.id ?? '')
    expect(why?.shared).toMatchObject({ type: 'Late', frame: undefined })
    expect(why?.unknown).toEqual([])
  })

  test('of an older release knows only the handler of its source', async () => {
    const why = await made.whyGrouped((await groupOf('old'))?.id ?? '')
    expect(why?.shared).toMatchObject({ type: undefined, handler: 'legacy' })
    expect(why?.unknown).toEqual(['type', 'frame'])
  })
})

describe('a group of an older release', () => {
  test('gets type and handler with its next dead letter', async () => {
    const signature = '2-0000000000000005'
    await made.ingest(new ListSource([failed([record({ signature })], 1, 'bare')], 'upgraded'))
    const before = await groupOf('bare')
    expect(before).toMatchObject({ errorType: undefined, handler: undefined })
    const next = { ...failed(signed(signature), 1, 'next'), handler: 'charge' }
    await made.ingest(new ListSource([next], 'upgraded'))
    expect(await made.group(before?.id ?? '')).toMatchObject({
      errorType: 'TypeError',
      handler: 'charge',
      count: 2,
    })
  })
})

describe('a group of crash loops', () => {
  test('has no handler, because all handlers share it', async () => {
    const history = [record({ signature: 'crash-loop', type: 'CrashLoop' })]
    const loop = { ...failed(history, 1, 'loop'), handler: 'charge' }
    await made.ingest(new ListSource([loop], 'loops'), { handler: 'of-source' })
    expect(await groupOf('loop')).toMatchObject({ errorType: 'CrashLoop', handler: 'of-source' })
  })
})

describe('the failures of a dead letter', () => {
  const HISTORY = [
    record({ number: 1, class: 'transient', code: 'ECONNREFUSED', type: 'Error' }),
    record({ number: 2, at: NOW + 1, waitedMs: 1_500.5, type: 'TypeError', counted: false }),
    record({ number: 4, at: NOW + 2, waitedMs: 9_000 }),
  ]

  test('are stored with the number of runs', async () => {
    await made.ingest(new ListSource([failed(HISTORY, 4, 'history')], 'histories'))
    const { deadLetters } = await made.deadLetters({ key: 'history' })
    expect(deadLetters).toMatchObject([{ attempts: 2, runs: 4 }])
    expect(deadLetters[0]?.history).toEqual(HISTORY)
  })

  test('that an older release stored are attempts without wait and type', async () => {
    await made.ingest(new ListSource([failed(signed('2-0000000000000009'), 7, 'older')], 'older'))
    await pool.query(`update redrive_catalog.dead_letter set runs = null,
      history = history #- '{0,type}' #- '{0,waitedMs}' #- '{0,counted}' where key = 'older'`)
    const { deadLetters } = await made.deadLetters({ key: 'older' })
    expect(deadLetters).toMatchObject([{ attempts: 1, runs: 1 }])
    expect(deadLetters[0]?.history).toEqual([record({ signature: '2-0000000000000009' })])
  })
})
