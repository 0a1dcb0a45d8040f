import type { AlertNotice } from '../src/index.ts'

/** An alert with all facts. */
export const FIRING: AlertNotice = {
  key: 'redrive.test/new_signature/orders/9f1c',
  id: '0199a3f0-0000-7000-8000-000000000001',
  status: 'firing',
  kind: 'new_signature',
  severity: 'warning',
  summary: 'A new kind of failure in orders: Invalid input: expected number & <string>',
  source: 'orders',
  startedAt: 1_795_000_000_000,
  at: 1_795_000_000_000,
  facts: {
    eventType: 'order.placed',
    handler: 'billing',
    target: 'orders.dlq',
    class: 'schema',
    attempts: 3,
    ageMs: 1_860_000,
    error: 'Invalid input: <!channel> & friends',
  },
  link: 'https://redrive.example.com/groups/9f1c',
  runbook: 'https://example.com/runbooks#new',
}

export const RESOLVED: AlertNotice = {
  ...FIRING,
  status: 'resolved',
  at: FIRING.startedAt + 600_000,
}

/** Alerts with texts as long as sources and errors can be. */
export const LONG: readonly AlertNotice[] = Array.from({ length: 40 }, (_, place) => ({
  ...FIRING,
  key: `${'k'.repeat(300)}/${place}`,
  id: `id-${place}`,
  summary: '&<>'.repeat(3_000),
  source: `s${'&\n'.repeat(300)}`,
  facts: { ...FIRING.facts, handler: '<&>'.repeat(200), error: '"&\n<'.repeat(5_000) },
}))
