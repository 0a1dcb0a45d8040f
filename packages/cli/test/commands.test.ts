import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Output, ApiError, type ProblemCode, PROBLEMS } from '@redrive/api'
import { STATUSES } from '@redrive/api/enums'
import { FILTER_FIELDS, parseFilter } from '@redrive/api/filter'
import { afterEach, describe, expect, test } from 'vitest'
import { EXIT_OF_PROBLEM } from '../src/exit.ts'
import {
  type RecordedRequest,
  type FakeServer,
  fakeServer,
  type Handlers,
  Lost,
  refuse,
} from './fake-server.ts'
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

  test('shows the original body only with a reason, and says which mask hides a body', async () => {
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
      listDeadLetters: () => ({ deadLetters: [deadLetter()] }),
      setOutcomes: () => ({ changed: 1, skipped: [] }),
    }
    for (const filter of [['--run', RUN_A], [`group:${GROUP_A}`], ['source:orders']]) {
      const { stdout } = await runWith(setting, ['set-outcome', '--as', 'open', ...filter])
      expect(stdout).toBe('1 message now open, 0 skipped.\n')
      expect(server?.requests.at(-1)?.body).toEqual({ ids: [MESSAGE_A], as: 'open' })
      expect(JSON.stringify(server?.requests.at(-2)?.query)).toContain('not_returned')
    }
    const { code, stderr } = await runWith(setting, ['set-outcome', '--as', 'open'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('a filter such as group:7f3a, --run'),
    ])
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

describe('output for programs', () => {
  test('prints one document with --json and one per row with --jsonl', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: groups(), nextCursor: 'more' }) }
    const one = await runWith(handlers, ['groups', 'list', '--json'])
    expect(JSON.parse(one.stdout)).toEqual({
      groups: JSON.parse(JSON.stringify(groups())) as unknown,
      nextCursor: 'more',
    })
    const lines = await runWith(handlers, ['groups', 'list', '--jsonl'])
    expect(
      lines.stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: string }).id),
    ).toEqual([GROUP_A, GROUP_B])
    // Without a table, the trend is not requested.
    expect(server?.requests.map(({ operation }) => operation)).toEqual(['listGroups', 'listGroups'])
  })

  test('exports one line per dead letter', async () => {
    const { stdout } = await runWith(
      { exportDeadLetters: () => [deadLetter(), deadLetter({ id: MESSAGE_B })] },
      [
        'messages',
        'export',
        `group:${GROUP_A}`,
        'status:open',
        'header:tenant=acme corp',
        'json:/a/b=1',
        'eu bank',
      ],
    )
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(server?.requests[0]?.query).toEqual({
      filter: `group:${GROUP_A} status:open header:"tenant=acme corp" json:/a/b=1 "eu bank"`,
    })
  })

  const broken: Handlers = {
    exportDeadLetters: () => {
      throw new Lost(deadLetter(), deadLetter({ id: MESSAGE_B, lastFailedAt: NOW - 5_000 }))
    },
  }

  test('reports an incomplete export and how to continue', async () => {
    const { code, stdout, stderr } = await runWith(broken, ['messages', 'export'])
    expect(code).toBe(1)
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(stderr).toContain('Export stopped after 2 messages; the output is incomplete')
    expect(stderr).not.toContain('Cannot connect')
    // 1 ms later than the last one: others may have failed in the same millisecond.
    const [words] = /after:\S+ before:\S+/.exec(stderr) as unknown as [string]
    expect(words).toBe('after:2026-01-30T03:04:11.000Z before:2026-01-31T03:04:06.001Z')
    await runWith(broken, ['messages', 'export', ...words.split(' ')])
    expect(server?.requests.at(-1)?.query).toEqual({ filter: words })
    expect(parseFilter(words, NOW)).toEqual({ after: NOW - 86_400_000, before: NOW - 4_999 })
  })

  test('continues the export of a group without a start time', async () => {
    const { stderr } = await runWith(broken, ['messages', 'export', `group:${GROUP_A}`])
    expect(stderr).toContain('the same filter, but with before:2026-01-31T03:04:06.001Z\n')
  })

  test('reports an export that failed before its first line as any other failure', async () => {
    const { stderr } = await runWith(
      {
        exportDeadLetters: () => {
          throw new Lost()
        },
      },
      ['messages', 'export'],
    )
    expect(stderr).toContain('Cannot connect')
    expect(stderr).not.toContain('Export stopped')
  })

  /** Handlers for a run with `count` items that failed again, in pages. */
  const failedAgain = (count: number): Handlers => ({
    getReplay: () => theRun({ state: 'done', counts: { failed_again: count, resolved: 9 } }),
    listReplayItems: ({ query }) => {
      const { after = -1, limit = 100 } = query as { after?: number; limit?: number }
      const positions = Array.from({ length: count }, (_, position) => position * 3)
      const items = positions
        .filter((position) => position > after)
        .slice(0, limit)
        .map((position) => ({
          run: RUN_A,
          position,
          deadLetter: MESSAGE_A,
          replayId: MESSAGE_B,
          cycle: 2,
          state: 'failed_again' as const,
          publishCount: 1,
        }))
      return { items }
    },
  })

  test('lists all items of a run over several pages', async () => {
    const args = ['replay', 'show', RUN_A, '--items', 'failed_again']
    for (const count of [0, 199, 200, 401]) {
      server = await fakeServer(failedAgain(count))
      const { stdout, stderr } = await runWith({}, [...args, '--jsonl'])
      const positions = stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { position: number }).position)
      expect(positions).toEqual(Array.from({ length: count }, (_, position) => position * 3))
      expect(stderr).toBe('')
      const one = await runWith({}, [...args, '--json'])
      expect((JSON.parse(one.stdout) as { items: unknown[] }).items).toHaveLength(count)
      await server.close()
    }
  })

  test('prints 50 items for people, how many more exist, and how to list them', async () => {
    const args = ['replay', 'show', RUN_A, '--items', 'failed_again']
    const first = await runWith(failedAgain(1_401), args)
    expect(first.stdout.match(new RegExp(MESSAGE_A, 'g'))).toHaveLength(50)
    expect(first.stderr).toBe(`1,351 more. List all: redrive ${args.join(' ')} --limit 1401\n`)
    const all = await runWith({}, [...args, '--limit', '1401'])
    expect(all.stdout.match(new RegExp(MESSAGE_A, 'g'))).toHaveLength(1_401)
    expect(all.stderr).toBe('')
    const few = await runWith({}, [...args, '--jsonl', '--limit', '7'])
    expect(few.stdout.trimEnd().split('\n')).toHaveLength(7)
    expect(few.stderr).toContain('1,394 more')
  })

  test('limits a query without a time to one day and prints the limit', async () => {
    const { stderr } = await runWith({ listDeadLetters: () => ({ deadLetters: [] }) }, [
      'messages',
      'list',
      'status:open',
    ])
    expect(stderr).toContain('after:7d')
    expect(server?.requests[0]?.query).toEqual({
      filter: `status:open after:${NOW - 86_400_000}`,
      limit: 50,
    })
  })

  test('prints each problem once', async () => {
    const { stderr } = await runWith(
      {
        listSources: () =>
          refuse('invalid', 'this is wrong', { problems: ['this is wrong', 'that too'] }),
      },
      ['sources'],
    )
    expect(stderr).toBe('Error: this is wrong\n- that too\nRequest id: req-1\n')
  })

  test.each(Object.keys(PROBLEMS) as ProblemCode[])(
    'maps the problem %s to its exit code',
    async (code) => {
      const result = await runWith({ listSources: () => refuse(code, 'because of that') }, [
        'sources',
      ])
      expect(result.code).toBe(EXIT_OF_PROBLEM[code])
      expect(result.stdout).toBe('')
      expect(result.stderr).toContain('because of that')
    },
  )

  test('keeps the exit codes stable', () => {
    expect(EXIT_OF_PROBLEM).toMatchObject({
      invalid: 2,
      not_found: 3,
      unauthenticated: 4,
      forbidden: 4,
      conflict: 5,
      precondition_failed: 5,
      internal: 1,
    })
  })
})

describe('ids', () => {
  const handlers: Handlers = {
    listGroups: () => ({
      groups: [
        group(),
        group({ id: '7f3a0000-0000-5000-8000-00000000ffff' }),
        group({ id: GROUP_B }),
      ],
    }),
    changeGroup: () => group({ id: GROUP_B }),
    getGroup: () => group({ id: GROUP_B }),
    explainGroup: () => ({
      signature: 's',
      algorithm: 2,
      shared: { source: 'users', class: 'schema', message: 'm' },
      unknown: [],
      sample: 'x',
    }),
    listGroupComments: () => ({ comments: [] }),
    listDeadLetters: () => ({ deadLetters: [] }),
  }

  test('accepts a prefix of an id and sends only full ids', async () => {
    const { code } = await runWith(handlers, ['groups', 'change', 'C01D', '--state', 'resolved'])
    expect(code).toBe(0)
    const request = server?.requests.at(-1)
    expect(request?.params).toEqual({ id: GROUP_B })
    expect(request?.headers['if-match']).toBe('"tag"')
  })

  test('rejects an ambiguous prefix and lists the candidates', async () => {
    const { code, stderr } = await runWith(handlers, [
      'groups',
      'change',
      '7f3a',
      '--state',
      'muted',
    ])
    expect(code).toBe(2)
    expect(stderr).toContain(GROUP_A)
    expect(stderr).toContain('7f3a0000-0000-5000-8000-00000000ffff')
    expect(server?.requests.map(({ operation }) => operation)).toEqual(['listGroups'])
  })

  test('accepts a prefix that was not compared with all ids for reading, but not for changes', async () => {
    const endless: Handlers = {
      ...handlers,
      listGroups: () => ({ groups: [group({ id: GROUP_B })], nextCursor: 'more' }),
    }
    expect((await runWith(endless, ['groups', 'show', 'c01d'])).code).toBe(0)
    for (const args of [
      ['groups', 'change', 'c01d', '--state', 'resolved'],
      ['groups', 'comment', 'c01d', 'hello'],
      ['discard', 'group:c01d', '--yes'],
      ['replay', 'plan', 'group:c01d'],
    ]) {
      const { code, stderr } = await runWith(endless, args)
      expect(code).toBe(2)
      expect(stderr).toContain(GROUP_B)
      expect(stderr).toContain('use the full id')
    }
    expect(server?.requests.filter(({ body }) => body !== undefined)).toEqual([])
    const whole = await runWith(endless, ['groups', 'change', GROUP_B, '--state', 'resolved'])
    expect(whole.code).toBe(0)
  })

  test('finds a message that is not open by a prefix of its id', async () => {
    const discarded: Handlers = {
      listDeadLetters: ({ query }) => {
        const { filter = '' } = query as { filter?: string }
        const isIncluded = filter.includes('status:discarded')
        return { deadLetters: isIncluded ? [deadLetter({ status: 'discarded' })] : [] }
      },
      restore: () => ({ changed: 1, skippedCount: 0, skipped: [] }),
    }
    expect((await runWith(discarded, ['restore', '--id', MESSAGE_A.slice(0, 8)])).code).toBe(0)
    const { filter } = (server?.requests[0]?.query ?? {}) as { filter?: string }
    expect(parseFilter(filter ?? '', NOW).statuses).toEqual([...STATUSES])
    expect(server?.requests.at(-1)?.body).toEqual({ ids: [MESSAGE_A] })
  })

  test('reports an unknown prefix as not found', async () => {
    expect((await runWith(handlers, ['groups', 'show', 'dead'])).code).toBe(3)
    expect((await runWith(handlers, ['groups', 'show', '../me'])).code).toBe(2)
  })
})

describe('changes', () => {
  const handlers: Handlers = {
    discard: ({ body }) => ({
      changed: (body as { ids: string[] }).ids.length - 1,
      skippedCount: 1,
      skipped: [MESSAGE_B],
    }),
    restore: () => ({ changed: 2, skippedCount: 0, skipped: [] }),
    setOutcomes: () => ({ changed: 0, skipped: [MESSAGE_A] }),
    getReplay: () => theRun(),
    approveReplay: () => theRun({ state: 'running' }),
    getGroup: () => group(),
    changeGroup: () => group({ state: 'muted' }),
    overview: () => ({
      at: NOW,
      depth: 0,
      replaying: 0,
      undecided: 0,
      depthBySource: {},
      depthByClass: {},
      setAside: 0,
      alerts: [],
      expiring: 0,
      freezeReason: 'The catalog was restored.',
    }),
    acknowledgeRestore: () => undefined,
  }
  const mutations = () =>
    server?.requests.filter(({ headers }) => headers['idempotency-key'] !== undefined) ?? []

  test('does not prompt without a terminal, and names the flag to use', async () => {
    const { code, stderr } = await runWith(handlers, ['discard', '--id', MESSAGE_A])
    expect(code).toBe(2)
    expect(stderr).toContain('--yes')
    expect(mutations()).toEqual([])
  })

  test('does nothing when the prompt is declined', async () => {
    const { code, questions } = await runWith(handlers, ['discard', '--id', MESSAGE_A], {
      answers: false,
    })
    expect(code).toBe(1)
    expect(questions).toEqual(['Discard 1 message?'])
    expect(mutations()).toEqual([])
  })

  test('exits with 0 if all messages changed, 6 if some did and 5 if none did', async () => {
    expect((await runWith(handlers, ['discard', '--id', MESSAGE_A, MESSAGE_B, '--yes'])).code).toBe(
      6,
    )
    expect((await runWith(handlers, ['set-outcome', '--id', MESSAGE_A, '--as', 'open'])).code).toBe(
      5,
    )
    expect((await runWith(handlers, ['restore', '--id', MESSAGE_A, MESSAGE_B])).code).toBe(0)
  })

  test.each([
    ['discard', '--id', MESSAGE_A],
    ['discard', `group:${GROUP_A}`],
    ['restore', '--id', MESSAGE_A],
    ['set-outcome', '--id', MESSAGE_A, '--as', 'open'],
    ['groups', 'change', GROUP_A, '--state', 'muted'],
    ['groups', 'comment', GROUP_A, 'hello'],
    ['replay', 'plan', `group:${GROUP_A}`],
    ['replay', 'start', RUN_A],
    ['replay', 'pause', RUN_A],
    ['replay', 'resume', RUN_A],
    ['replay', 'cancel', RUN_A],
    ['replay', 'acknowledge-restore'],
    ['approve', RUN_A],
    ['token', 'create', 'ci', '--allow', 'view', '--source', 'orders'],
    ['token', 'revoke', GROUP_A],
    ['session', 'revoke', GROUP_A],
  ])('changes nothing with --dry-run: %s %s', async (...args) => {
    const { code, stdout } = await runWith(handlers, [...args, '--dry-run'])
    expect(code).toBe(0)
    expect(stdout).toContain('Nothing was changed')
    expect(mutations()).toEqual([])
  })

  test('shows the run before an approval and sends its hash', async () => {
    const { code, stderr, questions } = await runWith(handlers, ['approve', RUN_A], {
      answers: true,
    })
    expect(code).toBe(0)
    expect(stderr).toContain('37,980 ready')
    expect(questions).toEqual(['Approve hash sha256:abc, planned by alex?'])
    expect(mutations().at(-1)?.body).toEqual({ hash: 'sha256:abc' })
  })

  test.each<[string, Output<'getReplayChange'>, string]>([
    [
      'a patch',
      { kind: 'patch', isHidden: false, patch: [{ op: 'replace', path: '/a', value: 'b\u001b' }] },
      '"value": "b\\u001b"',
    ],
    ['an edit', { kind: 'edit', isHidden: false, bytes: 'eyJ9', text: '{"a":1}' }, '  {"a":1}'],
    ['a hidden edit', { kind: 'edit', isHidden: true }, 'permission "view_unmasked" is required'],
    ['a new key', { kind: 'force', isHidden: false }, 'gets a new key'],
  ])('shows the changes of a run before an approval: %s', async (_, change, shown) => {
    const changing = {
      ...handlers,
      getReplay: () => theRun({ isChanged: true }),
      getReplayChange: () => change,
    }
    const { code, stderr } = await runWith(changing, ['approve', RUN_A, '--yes'])
    expect(code).toBe(0)
    expect(stderr).toContain(shown)
  })

  test('reports when the approver may not see the changes', async () => {
    const changing = {
      ...handlers,
      getReplay: () => theRun({ isChanged: true }),
      getReplayChange: () => refuse('forbidden', 'Not you.'),
    }
    const { code, stderr } = await runWith(changing, ['approve', RUN_A, '--yes'])
    expect(code).toBe(0)
    expect(stderr).toContain('You may not see the changes of this run.')
  })

  test('prints what another person must do when a start needs their approval', async () => {
    const { code, stderr } = await runWith(
      {
        ...handlers,
        approveReplay: () =>
          refuse('conflict', 'Not by its planner.', { needsAnotherPerson: true }),
      },
      ['replay', 'start', RUN_A, '--yes'],
    )
    expect(code).toBe(5)
    expect(stderr).toContain(`redrive approve ${RUN_A}`)
    expect(stderr).toContain('must show them this hash: sha256:abc')
  })

  test('does not suggest another person when no user may start the run', async () => {
    const frozen = 'Replays are frozen. Look, then: redrive replay acknowledge-restore.'
    const { code, stderr } = await runWith(
      { ...handlers, approveReplay: () => refuse('conflict', frozen) },
      ['replay', 'start', RUN_A, '--yes'],
    )
    expect(code).toBe(5)
    expect(stderr).toContain(`Error: ${frozen}`)
    expect(stderr).not.toContain('redrive approve')
  })

  test('explains the consequences before it acknowledges a restore', async () => {
    const args = ['replay', 'acknowledge-restore']
    expect((await runWith(handlers, args)).code).toBe(2)
    expect((await runWith(handlers, args, { answers: false })).code).toBe(1)
    expect(mutations()).toEqual([])
    const { code, stdout, stderr, questions } = await runWith(handlers, args, { answers: true })
    expect(code).toBe(0)
    expect(stderr).toContain('Replays are frozen. The catalog was restored.')
    expect(questions).toEqual([expect.stringContaining('may be repeated')])
    expect(stdout).toContain('Acknowledged')
    expect(mutations().map(({ operation }) => operation)).toEqual(['acknowledgeRestore'])
    expect((await runWith(handlers, [...args, '--yes', '--json'])).stdout).toContain('true')
  })

  test('mutes a group until a future time or for a duration', async () => {
    const mute = (until: string) =>
      runWith(handlers, ['groups', 'change', GROUP_A, '--state', 'muted', '--until', until])
    const HOURS = 3_600_000
    expect((await mute('2h')).code).toBe(0)
    expect(mutations().at(-1)?.body).toEqual({ state: 'muted', mutedUntil: NOW + 2 * HOURS })
    expect((await mute('2026-02-01T00:00:00Z')).code).toBe(0)
    expect(mutations().at(-1)?.body).toMatchObject({ mutedUntil: Date.UTC(2026, 1, 1) })
    for (const until of ['2026-01-30T00:00:00Z', '0s', 'soon']) {
      const { code, stderr } = await mute(until)
      expect(code).toBe(2)
      expect(stderr).toContain('how long from now, such as 2h')
    }
    expect(mutations()).toHaveLength(2)
  })

  test('exits with a conflict when a plan has nothing to replay', async () => {
    const { code, stdout } = await runWith(
      { planReplay: () => theRun({ counts: { skipped: 5 }, skipped: { too_old: 5 } }) },
      ['replay', 'plan', 'source:orders', 'class:transient', 'after:2h'],
    )
    expect(code).toBe(5)
    expect(stdout).toContain('--override too_old')
    const selection = { filter: 'source:orders class:transient after:2h' }
    expect(server?.requests[0]?.body).toEqual({ selection })
  })

  test.each([
    ['replay', 'plan'],
    ['groups', 'change', GROUP_A],
    ['replay', 'plan', `group:${GROUP_A}`, '--rate', 'fast'],
    ['replay', 'plan', `group:${GROUP_A}`, '--canary', '1,x'],
    ['messages', 'list', 'after:yesterday-ish'],
    ['messages', 'list', 'sorce:orders'],
    ['messages', 'list', 'source:orders after:2h'],
    ['discard'],
    ['discard', '--text', 'declined'],
    ['discard', 'group:7f3a', '--id', MESSAGE_A],
    ['restore', 'sorce:orders'],
    ['set-outcome', '--id', MESSAGE_A, '--text', 'declined'],
    ['groups', 'list', '--limit', 'many'],
    ['groups', 'list', '--class', 'weird'],
    ['nonsense'],
  ])('rejects invalid arguments: %s %s %s %s', async (...args) => {
    expect((await runWith(handlers, args, { answers: true })).code).toBe(2)
    expect(mutations()).toEqual([])
  })
})

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

describe('comments', () => {
  test('confirms a new comment, also as JSON', async () => {
    const handlers: Handlers = { commentGroup: () => undefined }
    const args = ['groups', 'comment', GROUP_A, 'hello']
    expect((await runWith(handlers, args)).stdout).toBe(`Added a comment to group ${GROUP_A}.\n`)
    const { stdout } = await runWith(handlers, [...args, '--json'])
    expect(JSON.parse(stdout)).toEqual({ commented: GROUP_A })
  })
})

describe('a change whose response is lost', () => {
  const RESTORE = ['restore', '--id', MESSAGE_A]
  const lost = (): never => {
    throw new Lost()
  }
  /** Returns one response after the other, and then always the last one. */
  const inTurn = (...answers: readonly (() => Output<'restore'>)[]): Handlers => {
    let turn = 0
    return {
      restore: () => {
        const answer = answers[Math.min(turn, answers.length - 1)] as () => Output<'restore'>
        turn += 1
        return answer()
      },
    }
  }
  const done = (): Output<'restore'> => ({ changed: 1, skippedCount: 0, skipped: [] })
  const keys = () => server?.requests.map(({ headers }) => headers['idempotency-key']) ?? []

  test('is retried with the same idempotency key', async () => {
    const inProgress = () => refuse('in_progress', 'It is being worked on.')
    const { code, stdout, stderr } = await runWith(inTurn(lost, inProgress, done), RESTORE)
    expect(code).toBe(0)
    expect(stdout).toContain('1 message restored.')
    expect(stderr).toContain('Retrying; the change is applied at most once.')
    expect(keys()).toHaveLength(3)
    expect(new Set(keys()).size).toBe(1)
  })

  test('may have been applied, and the error asks the user to check', async () => {
    const { code, stdout, stderr } = await runWith(inTurn(lost), RESTORE)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /Error: The response did not arrive: .+\. The change may have been applied\. Check before/,
    )
    expect(stderr).not.toContain('Cannot connect')
    expect(keys()).toHaveLength(5)
    expect(new Set(keys()).size).toBe(1)
  })

  test('is also retried when a proxy got no response', async () => {
    const proxyTimeout = (): never => {
      const facts = { code: 'internal', status: 504, title: 'Gateway Timeout', detail: '' } as const
      throw new ApiError({ ...facts, type: '', requestId: '' })
    }
    const { code, stderr } = await runWith(inTurn(proxyTimeout, done), RESTORE)
    expect(code).toBe(0)
    expect(stderr).toContain('did not arrive: 504 Gateway Timeout. Retrying')
    expect(new Set(keys()).size).toBe(1)
  })

  test('was not applied if a retry is rejected', async () => {
    const refused = () => refuse('conflict', 'Not in this status.')
    const { code, stderr } = await runWith(inTurn(lost, refused), RESTORE)
    expect(code).toBe(5)
    expect(stderr).toContain('Error: Not in this status.')
    expect(stderr).not.toContain('may have been applied')
  })

  test('is not retried if the server never got the request', async () => {
    const { code, stderr } = await run(RESTORE, { env: { REDRIVE_URL: 'http://127.0.0.1:59999' } })
    expect(code).toBe(1)
    expect(stderr).toContain('Cannot connect')
    expect(stderr).not.toContain('Retrying')
  })

  test('may have been applied if the command was interrupted', async () => {
    const stop = new AbortController()
    const { code, stderr } = await runWith(
      {
        restore: () => {
          stop.abort()
          return new Promise(() => undefined)
        },
      },
      RESTORE,
      { signal: stop.signal },
    )
    expect(code).toBe(130)
    expect(stderr).toContain('Interrupted. The change may have been applied')
  })
})

describe('edit', () => {
  const handlers: Handlers = {
    getDeadLetter: () => detail(),
    getPayload: () => ({ bytes: 'e30=', text: '{\n  "email": "a@b"\n}', headers: {}, key: 'k' }),
    planReplay: () => theRun({ isChanged: true, counts: { planned: 1 }, skipped: {} }),
  }

  test('shows a diff and plans a run for the version that was read', async () => {
    let folder = ''
    const edit = (path: string) => {
      folder = path
      writeFileSync(path, readFileSync(path, 'utf8').replace('a@b', 'a@example.com') + '\n')
      return 0
    }
    const { code, stderr } = await runWith(handlers, ['edit', MESSAGE_A], { answers: true, edit })
    expect(code).toBe(0)
    expect(stderr).toContain('-   "email": "a@b"')
    expect(stderr).toContain('+   "email": "a@example.com"')
    const request = server?.requests.at(-1) as RecordedRequest
    expect(request.headers['if-match']).toBe('"tag"')
    const { selection, change } = request.body as { selection: unknown; change: { edit: string } }
    expect(selection).toEqual({ ids: [MESSAGE_A] })
    expect(Buffer.from(change.edit, 'base64').toString()).toBe('{\n  "email": "a@example.com"\n}')
    expect(() => readFileSync(folder)).toThrow('ENOENT')
  })

  const write = (path: string) => {
    writeFileSync(path, '{"email":"new"}')
    return 0
  }
  const keptAt = (stderr: string) => /still in (\S+\.json)\./.exec(stderr)?.[1] as string

  test.each([
    ['the prompt is declined', { answers: false }, handlers],
    [
      'the server rejects the plan',
      { answers: true },
      { ...handlers, planReplay: () => refuse('precondition_failed', 'It was changed.') },
    ],
    [
      'nothing can be replayed',
      { answers: true },
      { ...handlers, planReplay: () => theRun({ counts: { skipped: 1 } }) },
    ],
  ] as const)('keeps the changes of the user when %s', async (_, world, failing) => {
    const { code, stderr } = await runWith(failing, ['edit', MESSAGE_A], { ...world, edit: write })
    expect(code).not.toBe(0)
    const path = keptAt(stderr)
    expect(readFileSync(path, 'utf8')).toBe('{"email":"new"}')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    rmSync(dirname(path), { recursive: true })
  })

  test('keeps the changes of the user when the editor fails', async () => {
    const edit = (path: string) => write(path) + 1
    const { code, stderr } = await runWith(handlers, ['edit', MESSAGE_A], { answers: true, edit })
    expect(code).toBe(1)
    const path = keptAt(stderr)
    expect(readFileSync(path, 'utf8')).toBe('{"email":"new"}')
    rmSync(dirname(path), { recursive: true })
  })

  test('does not open an editor without a terminal for the prompt', async () => {
    let isOpened = false
    const edit = () => {
      isOpened = true
      return 0
    }
    const { code, stderr } = await runWith(handlers, ['edit', MESSAGE_A], { edit })
    expect([code, isOpened]).toEqual([2, false])
    expect(stderr).toContain('--yes')
  })

  test('plans and keeps nothing when the body was not changed', async () => {
    const { code, stderr } = await runWith(handlers, ['edit', MESSAGE_A], { answers: true })
    expect(code).toBe(1)
    expect(stderr).not.toContain('still in')
    expect(server?.requests.map(({ operation }) => operation)).not.toContain('planReplay')
  })
})

describe('server settings', () => {
  test('uses the server of a profile without the token of the environment', async () => {
    const home = mkdtempSync(join(tmpdir(), 'redrive-profiles-'))
    server = await fakeServer({
      me: () => ({ person: 'alex', name: 'Alex', via: 'token', grants: [], canApproveOwn: false }),
    })
    mkdirSync(join(home, 'redrive'))
    writeFileSync(join(home, 'redrive', 'token'), 'rdv_profile\n')
    writeFileSync(
      join(home, 'redrive', 'config.json'),
      JSON.stringify({
        profiles: { prod: { url: server.url, tokenFile: 'token' }, none: { url: server.url } },
      }),
    )
    const env = {
      XDG_CONFIG_HOME: home,
      REDRIVE_URL: 'http://127.0.0.1:1',
      REDRIVE_TOKEN: 'rdv_env',
    }
    expect((await run(['whoami', '--profile', 'prod'], { env })).code).toBe(0)
    expect(server.requests.at(-1)?.headers.authorization).toBe('Bearer rdv_profile')
    expect((await run(['whoami', '--profile', 'none'], { env })).code).toBe(0)
    expect(server.requests.at(-1)?.headers.authorization).toBeUndefined()
    expect((await run(['whoami', '--profile', 'test'], { env })).code).toBe(2)
  })

  test('rejects a token in a file that other users can read', async () => {
    const home = mkdtempSync(join(tmpdir(), 'redrive-profiles-'))
    const { chmodSync } = await import('node:fs')
    mkdirSync(join(home, 'redrive'))
    const path = join(home, 'redrive', 'config.json')
    writeFileSync(
      path,
      JSON.stringify({
        default: 'x',
        profiles: { x: { url: 'http://127.0.0.1:1', token: 'rdv_1' } },
      }),
    )
    chmodSync(path, 0o644)
    const { code, stderr } = await run(['whoami'], { env: { XDG_CONFIG_HOME: home } })
    expect(code).toBe(2)
    expect(stderr).toContain('chmod 600')
  })

  test.each([
    ['postgres://redrive:hunter2@db.internal/redrive', 'starts with "postgres:"'],
    ['https://ada:hunter2@redrive.example.com', 'without a user name or password'],
    ['hunter2', 'a value that is not a URL'],
  ])('rejects a wrong address without printing it: %s', async (url, expected) => {
    const { code, stderr } = await run(['sources'], { env: { REDRIVE_URL: url } })
    expect(code).toBe(2)
    expect(stderr).toContain(expected)
    expect(stderr).not.toContain('hunter2')
  })

  test('rejects an invalid token by its location without printing it', async () => {
    const home = mkdtempSync(join(tmpdir(), 'redrive-tokens-'))
    mkdirSync(join(home, 'redrive'))
    const [file, profiles] = [join(home, 'two'), join(home, 'redrive', 'config.json')]
    const wrong = 'rdv_hunter2\nrdv_hunter3'
    writeFileSync(file, wrong)
    const url = 'http://127.0.0.1:1'
    const written = { inline: { url, token: 'rdv_hunter2 ü' }, file: { url, tokenFile: file } }
    writeFileSync(profiles, JSON.stringify({ profiles: written }), { mode: 0o600 })
    const env = { XDG_CONFIG_HOME: home }
    const SOURCES = [
      [[], { REDRIVE_URL: url, REDRIVE_TOKEN: wrong }, 'REDRIVE_TOKEN'],
      [[], { REDRIVE_URL: url, REDRIVE_TOKEN_FILE: file }, file],
      [['--profile', 'inline'], env, `profile "inline" in ${profiles}`],
      [['--profile', 'file'], env, file],
    ] as const
    for (const [args, from, expected] of SOURCES) {
      for (const command of ['whoami', 'mcp']) {
        const { code, stdout, stderr } = await run([command, ...args], { env: from })
        expect(code).toBe(2)
        expect(stderr).toContain(expected)
        expect(stdout + stderr).not.toContain('hunter')
      }
    }
  })

  test('ignores a line end after a token', async () => {
    const me = () =>
      ({
        person: 'alex',
        name: 'Alex',
        via: 'token',
        grants: [],
        canApproveOwn: false,
      }) as Output<'me'>
    const env = { REDRIVE_TOKEN: 'rdv_1\n' }
    expect((await runWith({ me }, ['whoami'], { env })).code).toBe(0)
    expect(server?.requests[0]?.headers.authorization).toBe('Bearer rdv_1')
  })

  test('prints how to create a token when it is missing or cannot be created', async () => {
    const FOR = /--user SUBJECT .*--config FILE/
    const unknown = await runWith({ me: () => refuse('unauthenticated', 'Who?') }, ['whoami'])
    expect(unknown.code).toBe(4)
    expect(unknown.stderr).toMatch(FOR)
    await server?.close()
    server = undefined
    const { code, stderr } = await runWith(
      { createToken: () => refuse('forbidden', 'A token cannot make tokens.') },
      ['token', 'create', 'ci', '--allow', 'view', '--source', 'orders'],
    )
    expect(code).toBe(4)
    expect(stderr).toContain('A token cannot make tokens.')
    expect(stderr).toMatch(FOR)
  })

  test('prints what to set when no server is configured', async () => {
    const { code, stderr } = await run(['sources'], { env: { HOME: '/nonexistent' } })
    expect(code).toBe(2)
    expect(stderr).toContain('REDRIVE_URL')
  })

  test('reports a server that cannot be reached', async () => {
    const { code, stderr } = await run(['sources'], {
      env: { REDRIVE_URL: 'http://127.0.0.1:59999' },
    })
    expect(code).toBe(1)
    expect(stderr).toContain('Cannot connect')
  })
})

describe('set-aside messages', () => {
  const message = {
    id: MESSAGE_A,
    source: 'orders',
    at: NOW - 60_000,
    reason: 'body_too_large' as const,
    explanation: 'The body has 200000000 bytes, more than maxPayloadBytes (134217728).',
    status: 'open' as const,
    messageId: 'm-1',
    key: 'order-7',
    origin: 'orders',
    payloadBytes: 200_000_000,
    isComplete: true,
    sha256: 'ab'.repeat(32),
    withoutHeaders: [],
  }
  const handlers: Handlers = {
    listSetAside: () => ({ messages: [message] }),
    getSetAside: () => message,
    getSetAsidePayload: () => ({
      bytes: Buffer.from('{"order":7}').toString('base64'),
      encodedHeaders: '["table","trace",1]\n"abc"',
    }),
    replaySetAside: () => ({ changed: 1, skipped: [] }),
    approveSetAside: () => ({ changed: 0, skipped: [MESSAGE_A] }),
    discardSetAside: () => ({ changed: 1, skipped: [] }),
    reopenSetAside: () => ({ changed: 1, skipped: [] }),
  }

  test('are listed and shown with the reason', async () => {
    const listed = await runWith(handlers, ['set-aside', 'list', '--source', 'orders'])
    expect(listed.code).toBe(0)
    expect(listed.stdout).toMatch(/orders +1 min ago +open +.* The body has 200000000 bytes/)
    expect(server?.requests[0]?.query).toMatchObject({ sources: ['orders'] })
    const show = ['set-aside', 'show', MESSAGE_A, '--payload']
    const refused = await runWith(handlers, show)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('--payload requires --reason')
    const shown = await runWith(handlers, [...show, '--reason', 'ticket 7'])
    expect(server?.requests.at(-1)?.query).toMatchObject({ reason: 'ticket 7' })
    expect(shown.stdout).toContain('more than maxPayloadBytes')
    expect(shown.stdout).toContain('{"order":7}')
    expect(shown.stdout).toContain('"abc"')
  })

  test('are replayed, approved, discarded and reopened by id', async () => {
    for (const [verb, text, code] of [
      ['replay', '1 message requested.', 0],
      ['approve', '1 message skipped, because of the current status', 5],
      ['discard', '1 message discarded.', 0],
      ['reopen', '1 message open again.', 0],
    ] as const) {
      const done = await runWith(handlers, ['set-aside', verb, MESSAGE_A, '--yes'])
      expect([done.code, done.stdout]).toEqual([code, expect.stringContaining(text)])
      expect(server?.requests.at(-1)?.body).toEqual({ ids: [MESSAGE_A] })
    }
    const flags = ['--without-header', 'stack', '--without-header', 'trace', '--yes']
    await runWith(handlers, ['set-aside', 'replay', MESSAGE_A, ...flags])
    expect(server?.requests.at(-1)?.body).toEqual({
      ids: [MESSAGE_A],
      withoutHeaders: ['stack', 'trace'],
    })
  })
})
