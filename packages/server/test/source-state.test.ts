import type { StoredSourceCheck } from '@redrive/catalog'
import { expect, test } from 'vitest'
import { sourceStateOf } from '../src/operations/source-state.ts'

const check = (over: Partial<StoredSourceCheck> = {}): StoredSourceCheck => ({
  source: 'orders',
  process: 'a:1',
  checkedAt: 1_000,
  unreachable: undefined,
  missing: [],
  depth: 4,
  lag: 9,
  ...over,
})

test('a source that no process has checked lately is not reported as connected', () => {
  expect(sourceStateOf('orders', [check({ source: 'users' })])).toMatchObject({
    status: 'not_checked',
    processes: [],
  })
})

test('the worst process decides, and the newest process with a connection has the numbers', () => {
  const state = sourceStateOf('orders', [
    check(),
    check({ process: 'b:2', checkedAt: 2_000, depth: 5 }),
    check({ process: 'c:3', unreachable: 'ECONNREFUSED', depth: undefined, lag: undefined }),
  ])
  expect(state).toMatchObject({ status: 'unreachable', depth: 5, lag: 9 })
  expect(state.problem).toContain('c:3 cannot reach the broker: ECONNREFUSED')
  expect(state.processes.map(({ status }) => status)).toEqual([
    'connected',
    'connected',
    'unreachable',
  ])
})

test('a missing queue is named, with what to do', () => {
  const state = sourceStateOf('orders', [check({ missing: ['oders.dlq'], depth: 0 })])
  expect(state).toMatchObject({ status: 'missing_queue', depth: 0 })
  expect(state.problem).toContain('"oders.dlq" does not exist in the broker.')
  expect(state.problem).toContain('sources.orders')
})
