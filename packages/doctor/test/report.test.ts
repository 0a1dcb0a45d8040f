import { readFileSync } from 'node:fs'
import { ROOT } from '@redrive/dev-support'
import { topologyOf as kafkaTopology } from '@redrive/kafka'
import { migrationSql as catalogSql } from '@redrive/catalog'
import { migrationSql } from '@redrive/postgres'
import { describe, expect, it } from 'vitest'
import {
  diagnose,
  exitCodeOf,
  type Finding,
  findIn,
  type Grade,
  gradeOf,
  RABBITMQ_CHECKS,
  renderReport,
  type Report,
  type Severity,
} from '../src/index.ts'
import { ALL_CHECKS, checkTable } from '../src/table.ts'
import { NEWEST } from '../src/postgres/checks-tables.ts'
import { deadLetterTopic, replayedTopic, retryTopics, sourcesIn } from '../src/kafka/names.ts'
import { RABBITMQ, SOURCE } from './good.ts'

const finding = (check: string, severity: Severity, caps: Grade, subject = 'orders'): Finding => ({
  check,
  severity,
  subject,
  found: 'something',
  why: 'Because.',
  fix: 'do it',
  caps,
})

const report = (findings: readonly Finding[], accepted: readonly string[] = []): Report => ({
  brokers: [{ broker: 'rabbitmq', findings, graded: gradeOf(findings) }],
  graded: gradeOf(findings),
  accepted,
})

describe('the grade', () => {
  it('is A when no finding limits it', () => {
    expect(gradeOf([])).toEqual({ grade: 'A', cappedBy: [] })
    expect(gradeOf([finding('x', 'delay', 'A')])).toEqual({ grade: 'A', cappedBy: [] })
  })

  it('is as bad as the worst finding, and names those without which it would be better', () => {
    const [b, c, also] = [
      finding('b', 'loss', 'B'),
      finding('c', 'loss', 'C'),
      finding('c2', 'loss', 'C'),
    ]
    expect(gradeOf([b])).toEqual({ grade: 'B', cappedBy: [b] })
    expect(gradeOf([b, c, also])).toEqual({ grade: 'C', cappedBy: [c, also] })
  })

  it('is cost by a loss and by nothing else', () => {
    for (const { id, severity, caps } of ALL_CHECKS) {
      expect(`${id} ${severity === 'loss'}`).toBe(`${id} ${caps !== 'A'}`)
    }
  })
})

describe('the exit code', () => {
  it('is 1 when a finding can lose messages, and 0 otherwise', () => {
    expect(exitCodeOf(report([]))).toBe(0)
    expect(exitCodeOf(report([finding('x', 'duplicates', 'A')]))).toBe(0)
    expect(exitCodeOf(report([finding('x', 'loss', 'B')]))).toBe(1)
  })

  it('is 0 when what loses messages is accepted, and the grade stays', () => {
    const accepted = report([finding('x', 'loss', 'B')], ['x'])
    expect(exitCodeOf(accepted)).toBe(0)
    expect(accepted.graded.grade).toBe('B')
    expect(exitCodeOf(report([finding('x', 'loss', 'B'), finding('y', 'loss', 'B')], ['x']))).toBe(
      1,
    )
  })
})

describe('a finding', () => {
  it('contains the exact command', () => {
    const { 'dead-letter-strategy': _, ...without } = SOURCE.arguments
    const queues = [{ ...SOURCE, name: 'a.b', arguments: without }]
    const facts = { ...RABBITMQ, queues, vhost: 'shop', bindings: undefined }
    const [first] = findIn(RABBITMQ_CHECKS, facts)
    expect(first?.check).toBe('rabbitmq.dead-letter-strategy')
    expect(first?.fix).toBe(
      `dead-letter at least once: rabbitmqctl set_policy --vhost shop --priority 0 --apply-to queues a.b '^a\\.b$' '{"dead-letter-strategy":"at-least-once"}'`,
    )
  })

  it('comes before a lesser one', () => {
    const queues = [
      {
        ...SOURCE,
        isDurable: false,
        arguments: { ...SOURCE.arguments, 'delivery-limit': 1, 'message-ttl': 1 },
        type: 'classic',
      },
    ]
    const order = findIn(RABBITMQ_CHECKS, {
      ...RABBITMQ,
      queues,
      sources: ['orders'],
      handlerTimeoutMs: 9_000_000,
      bindings: undefined,
    })
    expect(order.map(({ severity, caps }) => `${severity} ${caps}`)).toEqual([
      'loss C',
      'loss B',
      'duplicates A',
      'delay A',
    ])
  })

  it('counts what is not known as the worst that it may hide', () => {
    const hidden = (hides: Severity) =>
      findIn(RABBITMQ_CHECKS, {
        ...RABBITMQ,
        unreadable: [{ what: 'x', why: 'no', allow: 'ask', hides }],
      })
    expect(hidden('loss')).toMatchObject([{ severity: 'loss', caps: 'C', fix: 'ask' }])
    expect(hidden('delay')).toMatchObject([{ severity: 'delay', caps: 'A' }])
  })
})

describe('the text', () => {
  it('contains found, why and fix of each finding, then the grade and its limits', () => {
    const findings = [
      finding('rabbitmq.expires', 'loss', 'C'),
      finding('rabbitmq.expires', 'loss', 'C', 'invoices'),
      finding('rabbitmq.lazy', 'advice', 'A'),
    ]
    expect(renderReport(report(findings, ['rabbitmq.lazy']))).toMatchInlineSnapshot(`
      "RabbitMQ: 3 findings, grade C
        LOSS rabbitmq.expires orders
          found  something
          also   invoices: something
          why    Because.
          fix    do it
        ADVICE rabbitmq.lazy orders (accepted)
          found  something
          why    Because.
          fix    do it

      Grade C: can lose accepted messages without a permanent failure: on a restart, a failover, a full queue or by age
        limited to grade C by rabbitmq.expires: orders and 1 more
      "
    `)
  })

  it('lists the first five of many equal findings', () => {
    const queues = Array.from({ length: 20 }, (_, at) =>
      finding('rabbitmq.expires', 'loss', 'C', `q${at}`),
    )
    const lines = renderReport(report(queues)).split('\n')
    expect(lines.filter((line) => line.includes('  also   '))).toEqual([
      ...['q1', 'q2', 'q3', 'q4'].map((name) => `    also   ${name}: something`),
      '    also   15 more; use --json to list all',
    ])
    expect(lines.filter((line) => line.includes('fix'))).toHaveLength(1)
  })

  it('escapes control characters in names', () => {
    const text = renderReport(report([finding('x', 'loss', 'C', 'a\u001b[2Jb\u202ec\nd')]))
    expect(text).toContain(String.raw`a\u{1b}[2Jb\u{202e}c\u{a}d`)
    expect(text).not.toContain('\u001b')
  })
})

describe('several brokers', () => {
  it('are one report, with a finding for an unreachable broker', async () => {
    const { brokers, graded } = await diagnose({
      rabbitmq: { management: 'http://guest:guest@127.0.0.1:25799', timeoutMs: 2_000 },
      kafka: { brokers: ['127.0.0.1:25799'], timeoutMs: 2_000 },
      postgres: { url: 'postgres://x@127.0.0.1:25799/x', timeoutMs: 2_000 },
    })
    expect(brokers.map(({ broker, findings }) => [broker, findings.length])).toEqual([
      ['rabbitmq', 1],
      ['kafka', 1],
      ['postgres', 1],
    ])
    expect(graded.grade).toBe('C')
    expect(graded.cappedBy).toHaveLength(3)
  })

  it('that are not asked for are not in it', async () => {
    expect(await diagnose({})).toEqual({
      brokers: [],
      graded: { grade: 'A', cappedBy: [] },
      accepted: [],
    })
  })
})

describe('values that the repository contains twice are equal', () => {
  it('names and retention of topics', () => {
    const source = { topic: 'a', group: 'b' }
    const { retries, deadLetters, replayed } = kafkaTopology('a', 'b', 1)
    expect(retryTopics(source)).toEqual(retries.map(({ name }) => name))
    expect(deadLetterTopic(source)).toBe(deadLetters.name)
    expect(replayedTopic(source)).toBe(replayed.name)
    const { fix } = ALL_CHECKS.find(({ id }) => id === 'kafka.retry-retention') ?? {}
    expect(fix).toContain(`retention.ms=${retries[0]?.retentionMs}`)
  })

  it('the newest migrations', () => {
    const newest = (sql: string) =>
      [...sql.matchAll(/migration where name = '([^']+)'/g)].map((match) => match[1]).at(-1)
    expect(NEWEST).toEqual({
      redrive: newest(migrationSql()),
      redrive_catalog: newest(catalogSql()),
    })
  })

  it('the tables of checks in docs/doctor.md', () => {
    const page = readFileSync(`${ROOT}docs/doctor.md`, 'utf8')
    for (const broker of ['rabbitmq', 'kafka', 'nats', 'postgres', 'redis', 'sqs']) {
      const table = checkTable(ALL_CHECKS.filter(({ id }) => id.startsWith(`${broker}.`)))
      expect(page).toContain(`<!-- checks of ${broker} -->\n${table}\n<!-- end -->`)
    }
  })

  it('ids of checks, each of which there is once', () => {
    const ids = ALL_CHECKS.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids)
      expect(id).toMatch(/^(rabbitmq|kafka|nats|postgres|redis|sqs)\.[a-z0-9-]+$/)
  })
})

describe('sources by the names of topics', () => {
  it.each([
    [
      'a topic and a group',
      ['orders', 'orders.billing.dlq'],
      [{ topic: 'orders', group: 'billing' }],
    ],
    ['dots in both', ['a.b', 'a.b.c.d.dlq'], [{ topic: 'a.b', group: 'c.d' }]],
    ['the longest topic that there is', ['a', 'a.b', 'a.b.c.dlq'], [{ topic: 'a.b', group: 'c' }]],
    ['none without a topic', ['orders.billing.dlq'], []],
    ['none without a group', ['orders', 'orders.dlq'], []],
  ])('%s', (_, names, expected) => {
    expect(sourcesIn(names)).toEqual(expected)
  })
})
