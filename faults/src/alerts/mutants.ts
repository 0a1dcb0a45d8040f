import type { Edit, Mutant } from '../harness/mutant.ts'

const RULES = 'ops/prometheus/redrive.rules.yaml'
const STATE = 'packages/telemetry/src/from-state.ts'
const CATALOG = 'packages/server/src/http/catalog-metrics.ts'

const rule = (find: string, replace: string): Edit => [RULES, find, replace]

/** Mistakes in rules and metrics with which an operator gets no alert, or the wrong one. */
export const MUTANTS: readonly Mutant[] = [
  [
    'the alert for an open breaker ignores a half-open one',
    'database-outage',
    'missing alert',
    rule(
      'max by (dependency) (redrive_circuit_breaker_state == 1 or redrive_circuit_breaker_state == 2) > 0',
      'max by (dependency) (redrive_circuit_breaker_state) == 2',
    ),
  ],
  [
    'a rule counts only increases, and a process that starts again begins above 0',
    'poison-message',
    'missing alert',
    rule(
      ' or sum by (source, handler) (redrive_dlq_quarantined_total unless present_over_time(redrive_dlq_quarantined_total[1h] offset 10m)) > 0',
      '',
    ),
  ],
  [
    'a rule has the name of a metric that does not exist',
    'dead-letter-flood',
    'missing alert',
    rule('redrive_dlq_flood_total', 'redrive_dlq_floods_total'),
  ],
  [
    'the link to a runbook is wrong',
    'dead-letter-flood',
    'wrong alert',
    rule('runbooks.md#redrivedeadletterflood', 'runbooks.md#redriveflood'),
  ],
  [
    'the server does not export the number of set-aside messages',
    'set-aside-message',
    'missing alert',
    [CATALOG, "'redrive_set_aside_messages'", "'redrive_aside_messages'"],
  ],
  [
    'the number of partitions is not exported',
    'nothing-assigned',
    'missing alert',
    [
      STATE,
      "...(assigned === undefined ? [] : [value('redrive.consumer.assigned', assigned, labels)]),",
      '',
    ],
  ],
  [
    'a second alert fires for a consumer without a partition',
    'nothing-assigned',
    'false alert',
    rule(' unless (redrive_consumer_assigned == 0)', ''),
  ],
  [
    'the age of unproven messages does not end',
    'unproven-message',
    'not resolved',
    [STATE, 'oldestUnproven === undefined ? 0 :', 'oldestUnproven === undefined ? 3_600_000 :'],
  ],
]
