import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT, services } from '@redrive/dev-support'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { knownMetrics } from './known-metrics.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}

interface RulesFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
}

const FILE = join(ROOT, 'ops/prometheus/redrive.rules.yaml')
const file = parse(readFileSync(FILE, 'utf8')) as RulesFile
const rules = file.groups.flatMap((group) => group.rules)

/** One series with which an alert fires, and the values with which it is silent. */
interface Case {
  readonly series: string
  /** Values, one for each minute, as promtool writes them. */
  readonly fires: string
  readonly silent: string
  /** When the alert is evaluated. */
  readonly at: string
  /** A series that the rule needs in addition: series and values. */
  readonly with?: readonly [series: string, values: string]
  /** Another series that silences the alert: series and values. */
  readonly silencedBy?: readonly [series: string, values: string]
  /** Whether it also fires for a series that begins above 0. */
  readonly isCounter?: true
}

// biome-ignore format: one row per alert, to be read as a table
const CASES: Readonly<Record<string, Case>> = {
  RedriveConsumerDown: { series: 'redrive_consumer_health{source="orders",handler="billing"}', fires: '0x20', silent: '2x20', at: '10m', silencedBy: ['redrive_consumer_assigned{source="orders",handler="billing"}', '0x20'] },
  RedriveConsumerDisconnected: { series: 'redrive_consumer_connected{source="orders",handler="billing"}', fires: '0x20', silent: '1x20', at: '10m' },
  RedriveNothingAssigned: { series: 'redrive_consumer_assigned{source="orders",handler="billing"}', fires: '0x20', silent: '3x20', at: '10m', silencedBy: ['redrive_consumer_assigned{source="orders",handler="billing",instance="standby"}', '2x20'] },
  RedriveNoConsumer: { series: 'redrive_broker_lag{source="orders"}', fires: '7x20', silent: '0x20', at: '15m', silencedBy: ['redrive_consumer_connected{source="orders",handler="billing",instance="a"}', '1x20'] },
  RedriveCircuitBreakerOpen: { series: 'redrive_circuit_breaker_state{dependency="payments"}', fires: '2 1 2 1x20', silent: '0 2 0x20', at: '5m' },
  RedriveCircuitBreakerIsolated: { series: 'redrive_circuit_breaker_state{dependency="payments"}', fires: '3x90', silent: '2x90', at: '80m' },
  RedriveHandlersHung: { series: 'redrive_consumer_hung{source="orders",handler="billing"}', fires: '2x20', silent: '0x20', at: '10m' },
  RedriveMessageUnproven: { series: 'redrive_consumer_unproven_age_seconds{source="orders",handler="billing"}', fires: '1801x20', silent: '1800x20', at: '5m' },
  RedriveDeadLetterFlood: { series: 'redrive_dlq_flood_total{source="orders"}', fires: '0x12 1x20', silent: '1x30', at: '15m', isCounter: true },
  RedriveQuarantined: { series: 'redrive_dlq_quarantined_total{source="orders",handler="billing",reason="crash_loop"}', fires: '0x12 1x20', silent: '1x30', at: '15m', isCounter: true },
  RedriveDeadLetterWriteFailed: { series: 'redrive_dlq_write_failed_total{source="orders"}', fires: '0x12 1x20', silent: '1x30', at: '15m', isCounter: true },
  RedriveRetryBudgetExhausted: { series: 'redrive_retry_rate_limited_total{source="orders"}', fires: '0+5x20', silent: '5x20', at: '15m' },
  RedriveHighRetryRate: { series: 'redrive_retry_attempt_total{source="orders",handler="billing",class="transient",where="broker"}', fires: '0+6300x20', silent: '0+5900x20', at: '10m' },
  RedriveMessagesExpired: { series: 'redrive_consumer_messages_expired_total{source="orders"}', fires: '0x12 1x20', silent: '1x30', at: '15m', isCounter: true },
  RedriveEventsLost: { series: 'redrive_emitter_failure_total{sink="loki",result="lost",reason="store_failed"}', fires: '0x12 1x20', silent: '1x30', at: '15m', isCounter: true },
  RedriveEventsDropped: { series: 'redrive_emitter_failure_total{sink="loki",result="dropped",reason="queue_full"}', fires: '0+1x20', silent: '1x20', at: '15m' },
  RedriveSinkBreakerOpen: { series: 'redrive_emitter_breaker_state{sink="loki"}', fires: '2 1 2 1x20', silent: '0 2 0x20', at: '5m' },
  RedriveDeadLettersHigh: { series: 'redrive_dead_letters{source="orders",class="transient"}', fires: '100x20', silent: '99x20', at: '10m', with: ['redrive_dead_letters_threshold{source="orders"}', '100x20'], silencedBy: ['redrive_dead_letters_threshold{source="orders",instance="b"}', '101x20'] },
  RedriveDeadLettersVeryHigh: { series: 'redrive_dead_letters{source="orders",class="transient"}', fires: '10001x20', silent: '10000x20', at: '10m' },
  RedriveOldDeadLetter: { series: 'redrive_oldest_dead_letter_age_seconds{source="orders"}', fires: '1800x20', silent: '1799x20', at: '10m', with: ['redrive_oldest_dead_letter_age_threshold_seconds{source="orders"}', '1800x20'] },
  RedriveNewSignature: { series: 'redrive_new_groups{source="orders"}', fires: '1x20', silent: '0x20', at: '1m' },
  RedriveRegressedSignature: { series: 'redrive_regressed_groups{source="orders"}', fires: '1x20', silent: '0x20', at: '1m' },
  RedriveDeadLettersExpiring: { series: 'redrive_dead_letters_expiring{source="orders"}', fires: '3x90', silent: '0x90', at: '80m' },
  RedriveSetAside: { series: 'redrive_set_aside_messages{source="orders"}', fires: '1x20', silent: '0x20', at: '5m' },
  RedriveIngestBehind: { series: 'redrive_broker_dead_letters{source="orders"}', fires: '101x20', silent: '100x20', at: '15m' },
  RedriveIngestStopped: { series: 'redrive_broker_dead_letters{source="orders"}', fires: '1x60', silent: '1x20 0 1x40', at: '40m' },
  RedriveSourceUnreachable: { series: 'redrive_broker_up{source="orders",broker="rabbitmq"}', fires: '0x20', silent: '1x20', at: '10m' },
  RedriveSourceMisconfigured: { series: 'redrive_broker_missing_queues{source="orders"}', fires: '1x20', silent: '0x20', at: '10m' },
  RedriveDatabaseDown: { series: 'redrive_database_up', fires: '0x20', silent: '1x20', at: '5m' },
  RedriveReplayStopped: { series: 'redrive_replaying_dead_letters{source="orders"}', fires: '4x60', silent: '0x60', at: '40m', silencedBy: ['redrive_replay_items_total{source="orders",outcome="resolved"}', '0+1x60'] },
  RedriveReplayUndecided: { series: 'redrive_undecided_dead_letters{source="orders"}', fires: '4x90', silent: '0x90', at: '80m' },
  RedriveReplayMismatch: { series: 'redrive_replay_mismatches_total{source="orders"}', fires: '0 0 1x20', silent: '1x20', at: '5m' },
  RedriveRefusedCredentials: { series: 'redrive_refused_credentials_total{kind="token"}', fires: '0+120x20', silent: '0+50x20', at: '15m' },
  RedriveAuditExportBehind: { series: 'redrive_audit_export_delay_seconds{target="siem"}', fires: '3601x20', silent: '3600x20', at: '10m' },
}

let promtool = 'promtool'
beforeAll(async () => {
  await services('up', 'prometheus')
  promtool = join(dirname(await services('do', 'prometheus', 'path')), 'promtool')
})

/** Writes the rules without texts, which contain values, and the tests, and runs promtool. */
function play(tests: readonly object[]): {
  readonly status: number | null
  readonly output: string
} {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-rules-'))
  const silentGroups = file.groups.map((group) => ({
    ...group,
    rules: group.rules.map(({ annotations: _, ...rule }) => rule),
  }))
  writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: silentGroups }))
  const suite = { rule_files: ['rules.yaml'], evaluation_interval: '1m', tests }
  writeFileSync(join(folder, 'test.yaml'), stringify(suite))
  const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', 'test.yaml'], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, output: `${stdout}${stderr}` }
}

type Series = readonly [series: string, values: string]

/** Metrics of the catalog. Each process of the server exports the same values. */
const OF_CATALOG = /^redrive_(dead_letters|oldest|new_groups|regressed|set_aside|replay|undecided)/

/** Returns a series as Prometheus has it with two processes of the server. */
const ofProcesses = ([name, values]: Series): readonly Series[] =>
  OF_CATALOG.test(name) && !name.includes('instance=')
    ? ['a', 'b'].map((one) => [name.replace('}', `,instance="${one}"}`), values] as const)
    : [[name, values]]

const testOf = (
  rule: Rule,
  at: string,
  series: readonly Series[],
  expected: readonly object[],
) => ({
  name: rule.alert,
  interval: '1m',
  input_series: series.flatMap(ofProcesses).map(([name, values]) => ({ series: name, values })),
  alert_rule_test: [{ eval_time: at, alertname: rule.alert, exp_alerts: expected }],
})

/** The labels of the alert: those of the series that the rule keeps. */
function labelsOf({ expr, labels }: Rule, series: string): Readonly<Record<string, string>> {
  const kept = /\bby \(([a-z_, ]*)\)/.exec(expr)?.[1]?.split(', ')
  const own = [...series.matchAll(/([a-z_]+)="([^"]*)"/g)].map(
    ([, name = '', value = '']) => [name, value] as const,
  )
  const isAggregated = /\b(sum|max|min)[ (]/.test(expr)
  const shown = own.filter(([name]) => (isAggregated ? kept?.includes(name) === true : true))
  return { ...Object.fromEntries(shown), severity: labels.severity }
}

describe('the alert rules', () => {
  it('are valid', () => {
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'rules', FILE], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`${rules.length} rules found`)
  })

  it('have a case each, and a section in the runbooks', () => {
    const names = rules.map(({ alert }) => alert)
    expect(Object.keys(CASES).sort()).toEqual([...names].sort())
    const runbooks = readFileSync(join(ROOT, 'docs/runbooks.md'), 'utf8')
    expect(names.filter((name) => !runbooks.includes(`\n## ${name}\n`))).toEqual([])
    for (const { alert, annotations } of rules) {
      expect(annotations.runbook_url).toMatch(
        new RegExp(`/docs/runbooks\\.md#${alert.toLowerCase()}$`),
      )
    }
  })

  it('use only metrics and labels that exist', () => {
    const known = knownMetrics()
    const unknown = rules.flatMap(({ alert, expr }) =>
      [...expr.matchAll(/\bredrive_[a-z_]+/g)]
        .map(([name]) => name)
        .filter((name) => !known.has(name))
        .map((name) => `${alert}: ${name}`),
    )
    expect(unknown).toEqual([])
  })

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s fires and is silent',
    (alert, rule) => {
      const {
        series,
        fires,
        silent,
        at,
        silencedBy,
        with: needed,
        isCounter,
      } = CASES[alert] as Case
      const more = needed === undefined ? [] : [needed]
      const firing = [{ exp_labels: labelsOf(rule, series) }]
      const tests = [
        testOf(rule, at, [[series, fires], ...more], firing),
        testOf(rule, at, [[series, silent], ...more], []),
        ...(isCounter === true ? [testOf(rule, at, [[series, '_x12 1x20']], firing)] : []),
        ...(silencedBy === undefined
          ? []
          : [testOf(rule, at, [[series, fires], ...more, silencedBy], [])]),
      ]
      const { status, output } = play(tests)
      expect({ status, output }).toMatchObject({ status: 0 })
    },
  )
})
