import { expect, test } from 'vitest'
import { countRun } from '../src/cycle.ts'
import { FIRST_CYCLE } from '../src/delivery.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import { aFailure, NOW } from './fixtures.ts'

const run = { policy: resolvePolicy(), failure: aFailure(), now: NOW, waitedMs: 7 }

test('a failed run is recorded with its trace, if it has one', () => {
  const record = {
    number: 1,
    at: NOW,
    waitedMs: 7,
    class: 'unknown',
    signature: 's1',
    code: 'E1',
    type: 'TypeError',
    message: 'no',
    counted: true,
  }
  expect(countRun(FIRST_CYCLE, run, 'message').history).toStrictEqual([record])
  const traced = countRun(FIRST_CYCLE, { ...run, trace: '00-a' }, 'message')
  expect(traced.history).toStrictEqual([{ ...record, trace: '00-a' }])
})
