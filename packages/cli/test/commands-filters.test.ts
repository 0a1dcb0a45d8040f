import { FILTER_FIELDS } from '@redrive/api/filter'
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, type Handlers } from './fake-server.ts'
import { GROUP_A, MESSAGE_A, MESSAGE_B, RUN_A, theRun } from './things.ts'
import { NOW, run, type WorldOptions } from './world.ts'

let server: FakeServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function runWith(handlers: Handlers, args: readonly string[], options: WorldOptions = {}) {
  server ??= await fakeServer(handlers)
  return run(args, { ...options, env: { ...server.env, ...options.env } })
}

describe('a filter', () => {
  test('selects messages for a plan', async () => {
    const plan = ['replay', 'plan', 'source:orders', 'after:2h', 'eu bank']
    const { code } = await runWith({ planReplay: () => theRun() }, plan)
    expect(code).toBe(0)
    const selection = { filter: 'source:orders after:2h "eu bank"' }
    expect(server?.requests[0]?.body).toEqual({ selection })
  })

  test.each([
    ['key:a b', 'key:"a b"'],
    ['say "no"', '"say \\"no\\""'],
    ['key:"a b"', 'key:"a b"'],
    ['connect to 10.0.0.1:5432', '"connect to 10.0.0.1:5432"'],
  ])('keeps the argument %j together', async (argument, word) => {
    const list = ['messages', 'list', 'after:2h', argument]
    await runWith({ listDeadLetters: () => ({ deadLetters: [] }) }, list)
    expect(server?.requests[0]?.query).toEqual({ filter: `after:2h ${word}`, limit: 50 })
  })

  test('that is wrong shows the position and the correct form, before any request', async () => {
    const list = ['messages', 'list', 'group:7f3a', 'sorce:orders']
    const { code, stderr } = await runWith({}, list)
    expect(code).toBe(2)
    expect(stderr).toContain('Did you mean "source", as in source:orders?')
    expect(stderr).toContain('  sorce:orders\n  ^')
    expect(server?.requests).toEqual([])
  })

  test('in one argument is rejected, because as one value it would match nothing', async () => {
    const { code, stderr } = await runWith({}, ['messages', 'list', 'source:orders after:2h'])
    expect(code).toBe(2)
    expect(stderr).toContain('Remove the quotes around the filter')
  })

  test('has its fields in the help of each command', async () => {
    for (const args of [
      ['messages', 'list'],
      ['messages', 'export'],
      ['replay', 'plan'],
    ]) {
      const { stdout } = await run([...args, '--help'])
      for (const { name } of FILTER_FIELDS) expect(stdout).toContain(`  ${name}:`)
    }
  })

  test('reports how far back a search went, and how to continue', async () => {
    const list = ['messages', 'list', `group:${GROUP_A}`, 'eu-bank']
    const page = { deadLetters: [], nextCursor: '17_ab', searchedTo: Date.UTC(2026, 0, 31, 10) }
    const { code, stdout, stderr } = await runWith({ listDeadLetters: () => page }, list)
    expect(code).toBe(0)
    expect(stdout).toContain('No dead letters match so far.')
    expect(stderr).toContain(
      'Searched back to 2026-01-31T10:00:00.000Z. To continue, add --cursor 17_ab',
    )
  })
})

describe('a discard by a filter', () => {
  const frozen = {
    id: RUN_A,
    action: 'discard' as const,
    hash: 'h1',
    count: 12,
    sources: ['orders', 'parcels'],
    selectedBy: 'ada',
    selectedAt: NOW,
  }
  const settling: Handlers = {
    selectDeadLetters: () => frozen,
    discard: () => ({ changed: 10, skippedCount: 2, skipped: [MESSAGE_A, MESSAGE_B] }),
  }
  const discard = ['discard', 'source:orders', 'after:2h', 'eu bank']

  test('shows the exact count before it asks, then confirms exactly this selection', async () => {
    const { code, stdout, questions } = await runWith(settling, discard, { answers: true })
    expect(questions).toEqual(['Discard 12 messages of orders, parcels?'])
    expect(code).toBe(6)
    expect(stdout).toContain('10 messages discarded.')
    expect(stdout).toContain('2 messages skipped')
    expect(server?.requests.map(({ operation, body }) => [operation, body])).toEqual([
      ['selectDeadLetters', { action: 'discard', filter: 'source:orders after:2h "eu bank"' }],
      ['discard', { selection: RUN_A, hash: 'h1' }],
    ])
  })

  test('changes nothing when the prompt is declined', async () => {
    expect((await runWith(settling, discard, { answers: false })).code).toBe(1)
    expect(server?.requests.map(({ operation }) => operation)).toEqual(['selectDeadLetters'])
  })
})

describe('mutually exclusive flags', () => {
  test.each([
    [['group:7f3a', '--id', MESSAGE_A], '--id and a filter are mutually exclusive'],
    [['source:orders', '--id', MESSAGE_A], '--id and a filter are mutually exclusive'],
    [['--id', MESSAGE_A, '--patch', 'fix.json', '--force'], '--patch and --force'],
  ])('rejects a plan with %j before any request', async (args, expected) => {
    const { code, stderr } = await runWith({ planReplay: () => theRun() }, [
      'replay',
      'plan',
      ...args,
    ])
    expect(code).toBe(2)
    expect(stderr).toContain(expected)
    expect(stderr).toContain('are mutually exclusive')
    expect(server?.requests).toEqual([])
  })
})
