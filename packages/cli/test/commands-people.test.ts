import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, type Handlers } from './fake-server.ts'
import {
  deadLetter,
  detail,
  earlierCycle,
  group,
  GROUP_A,
  GROUP_B,
  groups,
  MESSAGE_A,
  MESSAGE_B,
  RUN_A,
  source,
  theRun,
} from './things.ts'
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

const golden = (name: string) => `golden/${name}.txt`

const TREND = {
  trend: ({ query }: { query: Readonly<Record<string, unknown>> }) => ({
    points: [2, 5, 8, 7, 1].map((count, at) => ({
      at: (query['after'] as number) + at * 720_000,
      count,
    })),
  }),
}

describe('output for people', () => {
  test('prints groups as a table with a trend that fits the terminal', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: groups() }), ...TREND }
    const { stdout, code } = await runWith(handlers, ['groups', 'list'])
    expect(code).toBe(0)
    await expect(stdout).toMatchFileSnapshot(golden('groups-list'))
    const narrow = await runWith(handlers, ['groups', 'list'], { columns: 90 })
    expect(Math.max(...narrow.stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(
      90,
    )
    await expect(narrow.stdout).toMatchFileSnapshot(golden('groups-list-90'))
  })

  test('explains why failures are one group and how to replay them', async () => {
    const { stdout } = await runWith(
      {
        getGroup: () => group(),
        explainGroup: () => ({
          signature: '2-0123456789abcdef',
          algorithm: 2,
          shared: {
            source: 'orders',
            class: 'transient',
            code: 'ECONNREFUSED',
            message: 'connect ECONNREFUSED payments-api',
          },
          unknown: ['type', 'frame'],
          sample: 'x',
        }),
        listGroupComments: () => ({
          comments: [{ id: '1', author: 'sam', text: 'on it\nlooking', writtenAt: NOW - 60_000 }],
        }),
        listDeadLetters: () => ({
          deadLetters: [deadLetter(), deadLetter({ id: MESSAGE_B, key: 'order-1002' })],
        }),
      },
      ['groups', 'show', GROUP_A],
    )
    await expect(stdout).toMatchFileSnapshot(golden('groups-show'))
  })

  test('shows a message with its attempts, newest first, and a masked body', async () => {
    const { stdout } = await runWith(
      {
        getDeadLetter: () => detail(),
        listDeadLetterReplays: () => ({ items: [] }),
        listCycles: () => ({ cycles: [earlierCycle()] }),
      },
      ['messages', 'show', MESSAGE_A],
    )
    await expect(stdout).toMatchFileSnapshot(golden('messages-show'))
  })

  test('shows the original body only with a reason, and names the mask that hides a body', async () => {
    const handlers: Handlers = {
      getDeadLetter: () => ({ ...detail(), body: { isHidden: false, hiddenBy: '/card/number' } }),
      listDeadLetterReplays: () => ({ items: [] }),
      listCycles: () => ({ cycles: [] }),
      getPayload: () => ({ bytes: 'e30=', text: '{"card":1}', headers: {}, key: 'k' }),
    }
    const show = ['messages', 'show', MESSAGE_A]
    expect((await runWith(handlers, show)).stdout).toContain(
      'Hidden: the mask /card/number found nothing. To show the original, add --unmasked --reason …',
    )
    const refused = await runWith(handlers, [...show, '--unmasked'])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('--unmasked requires --reason')
    const shown = await runWith(handlers, [...show, '--unmasked', '--reason', 'ticket 7'])
    expect(shown.stdout).toContain('{"card":1}')
    const asked = server?.requests.find(({ query }) => query !== undefined && 'reason' in query)
    expect(asked?.query).toMatchObject({ reason: 'ticket 7' })
  })

  test('prints the next command on a terminal, but not in a script', async () => {
    const handlers: Handlers = {
      ...TREND,
      listGroups: () => ({ groups: groups() }),
      listSources: () => ({ sources: [source()] }),
      listDeadLetters: () => ({ deadLetters: [deadLetter()] }),
      getDeadLetter: () => detail(),
      listCycles: () => ({ cycles: [] }),
      listDeadLetterReplays: () => ({ items: [] }),
    }
    const NEXT: readonly (readonly [args: readonly string[], expected: string])[] = [
      [['sources'], 'redrive groups list --open'],
      [['groups', 'list'], 'redrive groups show 7f3a'],
      [['messages', 'list', `group:${GROUP_A}`], 'redrive messages show 019c'],
      [['messages', 'show', MESSAGE_A], `redrive replay plan --id ${MESSAGE_A}`],
    ]
    for (const [args, expected] of NEXT) {
      expect((await runWith(handlers, args, { isTTY: true })).stderr).toContain(expected)
      expect((await runWith(handlers, args)).stderr).toBe('')
      expect((await runWith(handlers, [...args, '--json'], { isTTY: true })).stderr).toBe('')
    }
  })

  test('approves a paused run again', async () => {
    const paused = theRun({ state: 'paused' })
    const { code, stdout } = await runWith(
      {
        getReplay: () => paused,
        getReplayChange: () => ({ kind: 'none', isHidden: false }),
        approveReplay: () => ({ ...paused, state: 'running' }),
      },
      ['approve', RUN_A, '--yes'],
      { isTTY: true },
    )
    expect(code).toBe(0)
    expect(server?.requests.at(-1)).toMatchObject({
      operation: 'approveReplay',
      body: { hash: paused.hash },
    })
    expect(stdout).toContain('Approved and resumed.')
  })

  test('prints how many a plan replays, how many it skips, and how to start it', async () => {
    const { stdout, code } = await runWith({ planReplay: () => theRun() }, [
      'replay',
      'plan',
      `group:${GROUP_A}`,
      '--rate',
      '200/s',
    ])
    expect(code).toBe(0)
    expect(server?.requests[0]?.body).toEqual({ selection: { group: GROUP_A }, ratePerSecond: 200 })
    await expect(stdout).toMatchFileSnapshot(golden('replay-plan'))
  })

  test('prints that outcomes cannot be proven, what happens instead and how long it takes', async () => {
    const planned = theRun({ counts: { planned: 200 }, skipped: {} })
    const options = {
      ...planned.options,
      ...{ canary: [10], ratePerSecond: 50, outcomeTimeoutMs: 300_000 },
      ...({ proof: 'returns', proofReason: 'foreign_dead_letters' } as const),
    }
    const { stdout } = await runWith({ planReplay: () => ({ ...planned, options }) }, [
      'replay',
      'plan',
      `group:${GROUP_A}`,
      '--proof',
      'returns',
    ])
    expect(server?.requests[0]?.body).toMatchObject({ proof: 'returns' })
    await expect(stdout).toMatchFileSnapshot(golden('replay-plan-unproven'))
  })

  test('sets the outcome of all messages of a run or of a group', async () => {
    const item = (position: number, deadLetter: string) => ({
      ...{ run: RUN_A, position, deadLetter, replayId: RUN_A, cycle: 1, publishCount: 1 },
      state: 'unknown' as const,
    })
    const setting: Handlers = {
      listReplayItems: () => ({ items: [item(0, MESSAGE_A)] }),
      setOutcomes: () => ({ changed: 1, skipped: [] }),
    }
    const selections = [
      [['--run', RUN_A], { ids: [MESSAGE_A] }],
      [[`group:${GROUP_A}`], { filter: `group:${GROUP_A}` }],
      [['source:orders'], { filter: 'source:orders after:3650d' }],
    ] as const
    for (const [words, selected] of selections) {
      const { stdout } = await runWith(setting, ['set-outcome', '--as', 'open', ...words])
      expect(stdout).toBe('1 message now open, 0 skipped.\n')
      expect(server?.requests.at(-1)?.body).toEqual({ ...selected, as: 'open' })
    }
    const { code, stderr } = await runWith(setting, ['set-outcome', '--as', 'open'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('a filter such as group:7f3a, --run'),
    ])
  })

  test('reports all messages whose outcome could not be set, and that more match', async () => {
    const skipping: Handlers = {
      setOutcomes: () => ({
        changed: 0,
        skipped: [MESSAGE_A],
        skippedCount: 10_000,
        hasMore: true,
      }),
    }
    const stuck = await runWith(skipping, ['set-outcome', '--as', 'open', 'source:orders'])
    expect(stuck.stdout).toBe(
      '0 messages now open, 10,000 skipped. More messages match. Narrow the filter, and run the command again.\n',
    )
    expect(stuck.code).toBe(5)
  })

  test('prints sources, runs, tokens and audit entries as tables', async () => {
    const handlers: Handlers = {
      listSources: () => ({
        sources: [
          source(),
          source({
            source: 'users',
            open: 3,
            oldestAt: undefined,
            expiring: 2,
            setAside: 2,
            state: {
              status: 'unreachable',
              problem:
                'The process a:1 cannot reach the broker: connect ECONNREFUSED 10.0.0.1:5672.',
              processes: [{ process: 'a:1', status: 'unreachable', checkedAt: NOW }],
            },
          }),
        ],
      }),
      listExpired: () => ({
        days: [
          {
            source: 'orders',
            day: '2026-08-01',
            expiredAt: NOW - 3_600_000,
            byStatus: { open: 3, discarded: 1_200 },
          },
        ],
      }),
      listReplays: () => ({
        runs: [
          theRun({
            state: 'paused',
            pauseReason: 'too many failures',
            counts: { resolved: 900, failed_again: 40, queued: 60 },
          }),
        ],
      }),
      listTokens: () => ({
        tokens: [
          {
            id: GROUP_B,
            name: 'ci',
            person: 'alex',
            isAgent: true,
            grants: [{ actions: ['view'], sources: ['orders*'] }],
            createdAt: NOW,
            expiresAt: NOW + 86_400_000,
          },
        ],
      }),
      listSessions: () => ({
        sessions: [
          {
            id: GROUP_A,
            person: 'https://id.example.com#7',
            name: 'Alex',
            createdAt: NOW - 3_600_000,
            lastUsedAt: NOW - 60_000,
          },
        ],
      }),
      listAudit: () => ({
        entries: [
          {
            sequence: 12_345,
            at: NOW - 1_000,
            person: 'alex',
            via: 'token',
            operation: 'approveReplay',
            outcome: 'denied',
            source: 'orders',
            subject: RUN_A,
            facts: {},
            previous: 'p',
            hash: 'h',
          },
        ],
      }),
    }
    let all = ''
    for (const args of [
      ['sources'],
      ['sources', '--wide'],
      ['sources', 'show', 'users'],
      ['sources', 'expired'],
      ['replay', 'list'],
      ['token', 'list'],
      ['token', 'list', '--everyone'],
      ['session', 'list'],
      ['audit', 'list'],
    ]) {
      all += `$ redrive ${args.join(' ')}\n${(await runWith(handlers, args)).stdout}`
    }
    await expect(all).toMatchFileSnapshot(golden('tables'))
  })

  test('prints sources in 80 columns, and rejects a source that is not visible', async () => {
    const long = source({
      ...{ source: 'shop-eu-west-1.orders.created', replaying: 10_000, undecided: 12, setAside: 7 },
      state: { status: 'missing_queue', depth: 1_234_567, processes: [] },
    })
    const handlers: Handlers = { listSources: () => ({ sources: [source(), long] }) }
    const { stdout } = await runWith(handlers, ['sources'], { columns: 80 })
    const [title = '', ...lines] = stdout.split('\n')
    for (const line of [title, ...lines.slice(0, 2)]) expect(line.length).toBeLessThanOrEqual(80)
    expect(title).toBe(title.trim())
    expect(stdout).not.toContain('EXPIRING')
    expect(stdout).toContain(
      'shop-eu-west-1.orders.created: 10,000 being replayed, 12 undecided, 7 set aside.',
    )
    const other = await runWith(handlers, ['sources', 'show', 'oders'])
    expect([other.code, other.stderr]).toEqual([
      3,
      'Error: No source "oders" is visible to you. List them: redrive sources\n',
    ])
  })

  test('prints different sentences for no groups and for a filter without matches', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: [] }) }
    for (const args of [[], ['--open']]) {
      const { stdout } = await runWith(handlers, ['groups', 'list', ...args])
      expect(stdout).toBe('No failure groups. There is nothing to do.\n')
    }
    for (const args of [['--source', 'oders'], ['--class', 'schema'], ['--regressed']]) {
      const { stdout } = await runWith(handlers, ['groups', 'list', ...args])
      expect(stdout).toBe('No group matches the filter.\n')
    }
  })
})
