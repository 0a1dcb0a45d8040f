import { expect, it } from 'vitest'
import { LABEL_VALUES } from '../src/metrics.ts'
import { type Recorder, RunRecorders } from '../src/run-recorders.ts'

/** Recorders that note the series they were made for and the values they get. */
function recorders() {
  const made: string[] = []
  const values = new Map<string, number>()
  const runs = new RunRecorders((metric, labels): Recorder => {
    const series = [metric, ...Object.values(labels)].join(' ')
    made.push(series)
    return (value) => void values.set(series, (values.get(series) ?? 0) + value)
  })
  const run = (source: string, handler = 'billing', system = 'memory') =>
    runs.of({ delivery: { source }, handler, system })
  return { made, values, run }
}

it('makes each series once, when it gets its first value', () => {
  const { made, values, run } = recorders()
  run('orders').success(0.5, false)
  run('orders').success(0.25, false)
  run('orders').failure(2)
  run('orders').success(0.25, true)
  expect(made).toEqual([
    'redrive.process.duration orders billing memory success',
    'redrive.consumer.success orders billing',
    'redrive.process.duration orders billing memory failure',
    'redrive.retry.success orders billing',
  ])
  expect([...values.values()]).toEqual([1, 3, 2, 1])
})

it('separates sources, handlers and systems', () => {
  const { made, run } = recorders()
  run('orders').failure(1)
  run('parcels').failure(1)
  run('orders', 'audit').failure(1)
  run('orders', 'billing', 'kafka').failure(1)
  expect(new Set(made).size).toBe(4)
})

it('keeps a limited number of sources, and records the others', () => {
  const { made, values, run } = recorders()
  for (let at = 0; at < LABEL_VALUES; at++) run(`source-${at}`).failure(1)
  for (const _ of [1, 2]) run('one too many').failure(1)
  expect(made).toHaveLength(LABEL_VALUES + 2)
  expect(values.get('redrive.process.duration one too many billing memory failure')).toBe(2)
})
