import { expect, test } from 'vitest'
import { readForeignDeath } from '../src/foreign.ts'

const read = (headers: Readonly<Record<string, string>>) =>
  readForeignDeath({
    headers: Object.entries(headers).map(([name, value]) => [
      Buffer.from(name),
      Buffer.from(value),
    ]),
    timestamp: 7,
    topic: 'orders.dead',
    partition: 0,
    offset: 0,
    key: null,
    value: null,
  })

test('a dead letter with an error header has its message, type and retries', () => {
  const found = read({ 'x-error': 'StockError: no sofa', 'x-retry-count': '2' })
  expect(found).toMatchObject({
    reason: 'error_header',
    origin: undefined,
    partition: undefined,
    cycle: { attempts: 3, firstFailedAt: 7 },
  })
  expect(found.cycle.history).toMatchObject([
    { type: 'StockError', message: 'StockError: no sofa', at: 7 },
  ])
})

test('headers of a library have precedence', () => {
  expect(read({ 'kafka_dlt-original-topic': 'orders', 'x-error': 'no' })).toMatchObject({
    reason: 'spring_kafka_failed',
  })
})
