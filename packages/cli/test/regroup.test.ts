import { describe, expect, onTestFinished, test } from 'vitest'
import { fakeServer, type Handlers } from './fake-server.ts'
import { deadLetter, group, GROUP_A, GROUP_B } from './things.ts'
import { NOW, run, type WorldOptions } from './world.ts'

const REASON = ['--reason', 'one contract']
const mergedInto = { group: GROUP_A, by: 'ada', at: NOW - 3_600_000, reason: 'one contract' }

async function runWith(handlers: Handlers, args: readonly string[], options: WorldOptions = {}) {
  const server = await fakeServer(handlers)
  onTestFinished(() => server.close())
  const result = await run(args, { ...options, env: { ...server.env, ...options.env } })
  return { ...result, requests: server.requests }
}

describe('groups merge', () => {
  const handlers: Handlers = {
    getGroup: () => group(),
    listGroups: () => ({ groups: [group(), group({ id: GROUP_B })] }),
    mergeGroups: () => group({ openCount: 39_312, mergedCount: 1 }),
  }

  test('asks, sends the full ids with the reason, and prints how to undo it', async () => {
    const args = ['groups', 'merge', '7f3a', 'c01d', ...REASON]
    const { stdout, questions, requests } = await runWith(handlers, args, { answers: true })
    expect(questions).toEqual(['Merge 1 group into "connect ECONNREFUSED payments-api"?'])
    expect(requests.at(-1)).toMatchObject({
      operation: 'mergeGroups',
      params: { id: GROUP_A },
      body: { groups: [GROUP_B], reason: 'one contract' },
    })
    expect(stdout).toBe(
      `Group ${GROUP_A} has 39,312 open. It contains 1 merged group.\nTo undo it: redrive groups unmerge ${GROUP_B} --reason "..."\n`,
    )
  })

  test('requires a reason and sends nothing without one', async () => {
    const { code, stderr, requests } = await runWith(handlers, [
      'groups',
      'merge',
      GROUP_A,
      GROUP_B,
    ])
    expect([code, requests]).toEqual([2, []])
    expect(stderr).toContain('Add --reason')
  })

  test('sends nothing with --dry-run', async () => {
    const args = ['groups', 'merge', GROUP_A, GROUP_B, ...REASON, '--dry-run']
    const { stdout, requests } = await runWith(handlers, args)
    expect(requests.map(({ operation }) => operation)).not.toContain('mergeGroups')
    expect(stdout).toContain('/merge')
  })
})

describe('groups unmerge', () => {
  test('separates the group and prints its open count', async () => {
    const handlers: Handlers = { unmergeGroup: () => group({ id: GROUP_B, openCount: 1_200 }) }
    const args = ['groups', 'unmerge', GROUP_B, '--reason', 'two contracts']
    const { stdout, requests } = await runWith(handlers, args)
    expect(requests).toMatchObject([{ params: { id: GROUP_B }, body: { reason: 'two contracts' } }])
    expect(stdout).toBe(`Group ${GROUP_B} is a separate group again, with 1,200 open.\n`)
  })
})

describe('groups split', () => {
  const args = ['groups', 'split', GROUP_A, '--filter', '"relation ledger"', '--name', 'ledger']

  test('continues until all are compared, and prints how to undo it', async () => {
    const answers = [
      { group: group({ id: GROUP_B }), moved: 500, examined: 2_000, nextCursor: 'c1' },
      { group: group({ id: GROUP_B }), moved: 7, examined: 9 },
    ]
    const handlers: Handlers = {
      splitGroup: () => answers.shift() ?? { group: group(), moved: 0, examined: 0 },
    }
    const { stdout, requests, questions } = await runWith(handlers, [...args, ...REASON], {
      answers: true,
    })
    expect(questions).toEqual(['Split "relation ledger" off into the new group "ledger"?'])
    const body = { filter: '"relation ledger"', name: 'ledger', reason: 'one contract' }
    expect(requests.map((one) => one.body)).toEqual([body, { ...body, cursor: 'c1' }])
    expect(stdout).toBe(
      `Moved 507 messages to group ${GROUP_B}. Later ones follow.\nTo undo it: redrive groups merge ${GROUP_A} ${GROUP_B} --reason "..."\n`,
    )
  })

  test('requires a filter, a name and a reason', async () => {
    const without = await runWith({}, ['groups', 'split', GROUP_A, ...REASON])
    expect([without.code, without.requests]).toEqual([2, []])
    expect(without.stderr).toContain('Add --filter and --name')
  })
})

describe('groups show', () => {
  const handlers = (over: Parameters<typeof group>[0]): Handlers => ({
    getGroup: () => group(over),
    explainGroup: () => ({
      signature: '2-0123456789abcdef',
      algorithm: 2,
      shared: { source: 'orders', class: 'transient', message: 'connect ECONNREFUSED' },
      unknown: [],
      sample: 'connect ECONNREFUSED',
    }),
    listGroupComments: () => ({ comments: [] }),
    listDeadLetters: () => ({ deadLetters: [deadLetter()] }),
    listMergedGroups: () => ({ groups: [group({ id: GROUP_B, mergedInto })] }),
  })

  test('lists merged groups with user, time and reason', async () => {
    const { stdout } = await runWith(handlers({ mergedCount: 1 }), ['groups', 'show', GROUP_A], {
      columns: 160,
    })
    expect(stdout).toContain('Merged into it by hand')
    expect(stdout).toMatch(new RegExp(`${GROUP_B} .*ada .*1 h ago .*one contract`))
  })

  test('shows that the consumer gave the signature', async () => {
    const given = handlers({ signatureFrom: 'consumer' })
    const { stdout } = await runWith(given, ['groups', 'show', GROUP_A])
    expect(stdout).toContain('(signature given by the consumer, 2-0123456789abcdef)')
  })

  test('shows where a merged group is now', async () => {
    const { stdout } = await runWith(handlers({ mergedInto }), ['groups', 'show', GROUP_A])
    expect(stdout).toMatch(/Merged into +7f3a0000-.*, by ada 1 h ago: one contract/)
  })
})
