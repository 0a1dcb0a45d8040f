import type { PoolClient } from 'pg'
import { describe, expect, it } from 'vitest'
import { namesOf, watchQueries } from '../src/postgres/queries.ts'

const turn = (done: readonly string[], changes: string | null, most: number) => ({
  text: 'select * from redrive.outbox_turn($1, $2, $3, $4, $5)',
  values: [done, [], changes, 'orders', most],
  trail: '',
})

describe('the names of a query', () => {
  it('contain everything that a turn sends', () => {
    const retry = JSON.stringify([{ place: 'retry', reason: 'backoff' }])
    expect(namesOf(turn([], null, 5))).toEqual(['claim'])
    expect(namesOf(turn(['a'], null, 0))).toEqual(['complete'])
    expect(namesOf(turn(['a'], retry, 5))).toEqual(['claim', 'complete', 'hand-off retry'])
  })

  it('distinguish a quarantine from a dead letter', () => {
    const given = (reason: string) => turn([], JSON.stringify([{ place: 'failed', reason }]), 0)
    expect(namesOf(given('terminal'))).toEqual(['hand-off dead-letter'])
    expect(namesOf(given('same_failure_repeated'))).toEqual(['hand-off quarantine'])
  })

  it('distinguish the commit of a handler from the one after a deletion of keys', () => {
    const after = (trail: string) => namesOf({ text: 'commit', values: [], trail })
    expect(after('begin; insert into faults_effects')).toEqual(['inbox commit'])
    expect(after('begin; select redrive.inbox_forget($1)')).toEqual(['inbox forget commit'])
  })

  it('are empty for an unknown query', () => {
    expect(namesOf({ text: 'drop table orders', values: [], trail: '' })).toEqual([])
  })
})

describe('a watched connection', () => {
  it('reports the query and its response, and then passes the response on', async () => {
    const steps: string[] = []
    const client = {
      query: (text: string) => {
        steps.push(`asked ${text}`)
        return Promise.resolve({ rows: [1] })
      },
    }
    watchQueries(client as unknown as PoolClient, {
      before: (names) => void steps.push(`before ${names.join()}`),
      after: (names, { rows }) => void steps.push(`after ${names.join()} ${rows.length}`),
    })
    expect(await client.query('begin')).toEqual({ rows: [1] })
    expect(steps).toEqual(['before inbox begin', 'asked begin', 'after inbox begin 1'])
  })
})
