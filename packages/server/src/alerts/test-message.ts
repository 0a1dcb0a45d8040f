import { randomUUID } from 'node:crypto'
import type { AlertNotice } from '@redrive/alerts'
import type { Config } from '../config/schema.ts'
import { publicUrlIn } from '../start/components.ts'

/** Returns an alert and its end, to test a channel. The end closes the incident that the begin may open. */
export function testNotices(config: Config): readonly AlertNotice[] {
  const link = publicUrlIn(config)
  const at = Date.now()
  const begin: AlertNotice = {
    key: `${new URL(link).host}/test`,
    id: randomUUID(),
    status: 'firing',
    kind: 'test',
    severity: 'warning',
    summary: 'This is a test of the alerts of Redrive. Nothing is wrong',
    source: 'test',
    startedAt: at,
    at,
    facts: {
      eventType: 'order.placed',
      handler: 'billing',
      target: 'orders',
      class: 'transient',
      attempts: 3,
      ageMs: 60_000,
    },
    link,
  }
  return [begin, { ...begin, status: 'resolved' }]
}
