import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Answer, ApiError, type ProblemCode, PROBLEMS } from '@redrive/api'
import { STATUSES } from '@redrive/api/words'
import { afterEach, describe, expect, test } from 'vitest'
import { EXIT_OF_PROBLEM } from '../src/exit.ts'
import {
  type Asked,
  type FakeServer,
  fakeServer,
  type Handlers,
  Lost,
  refuse,
} from './fake-server.ts'
import {
  deadLetter,
  detail,
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

async function played(handlers: Handlers, args: readonly string[], options: WorldOptions = {}) {
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

describe('what people read', () => {
  test('groups are a table with a trend, sized to the terminal', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: groups() }), ...TREND }
    const { stdout, code } = await played(handlers, ['groups', 'list'])
    expect(code).toBe(0)
    await expect(stdout).toMatchFileSnapshot(golden('groups-list'))
    const narrow = await played(handlers, ['groups', 'list'], { columns: 90 })
    expect(Math.max(...narrow.stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(
      90,
    )
    await expect(narrow.stdout).toMatchFileSnapshot(golden('groups-list-90'))
  })

  test('a group says why it is one, and how to replay it', async () => {
    const { stdout } = await played(
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

  test('a message is shown with its attempts, newest first, and a masked body', async () => {
    const { stdout } = await played(
      { getDeadLetter: () => detail(), listDeadLetterReplays: () => ({ items: [] }) },
      ['messages', 'show', MESSAGE_A],
    )
    await expect(stdout).toMatchFileSnapshot(golden('messages-show'))
  })

  test('someone at a terminal is told what to type next; a script is not', async () => {
    const handlers: Handlers = {
      ...TREND,
      listGroups: () => ({ groups: groups() }),
      listSources: () => ({ sources: [source()] }),
      listDeadLetters: () => ({ deadLetters: [deadLetter()] }),
      getDeadLetter: () => detail(),
      listDeadLetterReplays: () => ({ items: [] }),
    }
    const NEXT: readonly (readonly [args: readonly string[], told: string])[] = [
      [['sources'], 'redrive groups list --open'],
      [['groups', 'list'], 'redrive groups show 7f3a'],
      [['messages', 'list', '--group', GROUP_A], 'redrive messages show 019c'],
      [['messages', 'show', MESSAGE_A], `redrive replay plan --id ${MESSAGE_A}`],
    ]
    for (const [args, told] of NEXT) {
      expect((await played(handlers, args, { isTTY: true })).stderr).toContain(told)
      expect((await played(handlers, args)).stderr).toBe('')
      expect((await played(handlers, [...args, '--json'], { isTTY: true })).stderr).toBe('')
    }
  })

  test('a plan says what goes out, what is kept out and how to start it', async () => {
    const { stdout, code } = await played({ planReplay: () => theRun() }, [
      'replay',
      'plan',
      '--group',
      GROUP_A,
      '--rate',
      '200/s',
    ])
    expect(code).toBe(0)
    expect(server?.asked[0]?.body).toEqual({ selection: { group: GROUP_A }, ratePerSecond: 200 })
    await expect(stdout).toMatchFileSnapshot(golden('replay-plan'))
  })

  test('sources, runs, tokens and the audit are tables', async () => {
    const handlers: Handlers = {
      listSources: () => ({
        sources: [source(), source({ source: 'users', open: 3, oldestAt: undefined })],
      }),
      listReplays: () => ({
        runs: [
          theRun({
            state: 'paused',
            pausedBecause: 'too many refailed',
            counts: { resolved: 900, refailed: 40, queued: 60 },
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
      listAudit: () => ({
        entries: [
          {
            sequence: 12_345,
            at: NOW - 1_000,
            person: 'alex',
            via: 'token',
            what: 'approveReplay',
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
    for (const args of [['sources'], ['replay', 'list'], ['token', 'list'], ['audit', 'list']]) {
      all += `$ redrive ${args.join(' ')}\n${(await played(handlers, args)).stdout}`
    }
    await expect(all).toMatchFileSnapshot(golden('tables'))
  })

  test('nothing is more than an empty table, and a filter that nothing fits is not nothing', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: [] }) }
    for (const args of [[], ['--open']]) {
      const { stdout } = await played(handlers, ['groups', 'list', ...args])
      expect(stdout).toBe('No failure group. Nothing waits here.\n')
    }
    for (const args of [['--source', 'oders'], ['--class', 'schema'], ['--regressed']]) {
      const { stdout } = await played(handlers, ['groups', 'list', ...args])
      expect(stdout).toBe('No group fits the filter.\n')
    }
  })
})

describe('what programs read', () => {
  test('--json is one document and nothing else; --jsonl one for each row', async () => {
    const handlers: Handlers = { listGroups: () => ({ groups: groups(), next: 'more' }) }
    const one = await played(handlers, ['groups', 'list', '--json'])
    expect(JSON.parse(one.stdout)).toEqual({
      groups: JSON.parse(JSON.stringify(groups())) as unknown,
      next: 'more',
    })
    const lines = await played(handlers, ['groups', 'list', '--jsonl'])
    expect(
      lines.stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: string }).id),
    ).toEqual([GROUP_A, GROUP_B])
    // No trend is asked for when nobody looks at it.
    expect(server?.asked.map(({ operation }) => operation)).toEqual(['listGroups', 'listGroups'])
  })

  test('an export is lines, as they come', async () => {
    const { stdout } = await played(
      { exportDeadLetters: () => [deadLetter(), deadLetter({ id: MESSAGE_B })] },
      [
        'messages',
        'export',
        '--group',
        GROUP_A,
        '--status',
        'open',
        '--header',
        'tenant=acme',
        '--body',
        '/a/b=1',
      ],
    )
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(server?.asked[0]?.query).toEqual({
      groups: [GROUP_A],
      statuses: ['open'],
      headers: ['tenant=acme'],
      json: ['/a/b=1'],
    })
  })

  const broken: Handlers = {
    exportDeadLetters: () => {
      throw new Lost(deadLetter(), deadLetter({ id: MESSAGE_B, lastFailedAt: NOW - 5_000 }))
    },
  }

  test('an export that breaks off says so, and how to go on', async () => {
    const { code, stdout, stderr } = await played(broken, ['messages', 'export'])
    expect(code).toBe(1)
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    expect(stderr).toContain('Broke off after 2; the output is not whole')
    expect(stderr).not.toContain('cannot be reached')
    // One later than the last: others may have failed in the same millisecond.
    const [goOn] = /--after \S+ --before \S+/.exec(stderr) as unknown as [string]
    expect(goOn).toBe('--after 2026-01-30T03:04:11.000Z --before 2026-01-31T03:04:06.001Z')
    await played(broken, ['messages', 'export', ...goOn.split(' ')])
    expect(server?.asked.at(-1)?.query).toEqual({ after: NOW - 86_400_000, before: NOW - 4_999 })
  })

  test('an export of a group goes on without a beginning', async () => {
    const { stderr } = await played(broken, ['messages', 'export', '--group', GROUP_A])
    expect(stderr).toContain('the same filters and --before 2026-01-31T03:04:06.001Z\n')
  })

  test('an export that never began is as any other that fails', async () => {
    const { stderr } = await played(
      {
        exportDeadLetters: () => {
          throw new Lost()
        },
      },
      ['messages', 'export'],
    )
    expect(stderr).toContain('cannot be reached')
    expect(stderr).not.toContain('Broke off')
  })

  /** A run with so many that failed again, in the pages that are asked for. */
  const refailed = (count: number): Handlers => ({
    getReplay: () => theRun({ state: 'done', counts: { refailed: count, resolved: 9 } }),
    listReplayItems: ({ query }) => {
      const { after = -1, most = 100 } = query as { after?: number; most?: number }
      const places = Array.from({ length: count }, (_, place) => place * 3)
      const items = places
        .filter((place) => place > after)
        .slice(0, most)
        .map((place) => ({
          run: RUN_A,
          place,
          deadLetter: MESSAGE_A,
          replayId: MESSAGE_B,
          cycle: 2,
          state: 'refailed' as const,
          publishes: 1,
        }))
      return { items }
    },
  })

  test('all items of a run are listed, however many there are', async () => {
    const args = ['replay', 'show', RUN_A, '--items', 'refailed']
    for (const count of [0, 199, 200, 401]) {
      server = await fakeServer(refailed(count))
      const { stdout, stderr } = await played({}, [...args, '--jsonl'])
      const places = stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { place: number }).place)
      expect(places).toEqual(Array.from({ length: count }, (_, place) => place * 3))
      expect(stderr).toBe('')
      const one = await played({}, [...args, '--json'])
      expect((JSON.parse(one.stdout) as { items: unknown[] }).items).toHaveLength(count)
      await server.close()
    }
  })

  test('people see a screen of items, how many more there are, and how to see them', async () => {
    const args = ['replay', 'show', RUN_A, '--items', 'refailed']
    const first = await played(refailed(1_401), args)
    expect(first.stdout.match(new RegExp(MESSAGE_A, 'g'))).toHaveLength(50)
    expect(first.stderr).toBe(`1,351 more. All of them: redrive ${args.join(' ')} --limit 1401\n`)
    const all = await played({}, [...args, '--limit', '1401'])
    expect(all.stdout.match(new RegExp(MESSAGE_A, 'g'))).toHaveLength(1_401)
    expect(all.stderr).toBe('')
    const few = await played({}, [...args, '--jsonl', '--limit', '7'])
    expect(few.stdout.trimEnd().split('\n')).toHaveLength(7)
    expect(few.stderr).toContain('1,394 more')
  })

  test('who asks for everything gets a day, and is told so', async () => {
    const { stderr } = await played({ listDeadLetters: () => ({ deadLetters: [] }) }, [
      'messages',
      'list',
      '--status',
      'open',
    ])
    expect(stderr).toContain('--after')
    expect(server?.asked[0]?.query).toEqual({
      statuses: ['open'],
      most: 50,
      after: NOW - 86_400_000,
    })
  })

  test('problems are said once', async () => {
    const { stderr } = await played(
      {
        listSources: () =>
          refuse('invalid', 'this is wrong', { problems: ['this is wrong', 'that too'] }),
      },
      ['sources'],
    )
    expect(stderr).toBe('Error: this is wrong\n- that too\nRequest req-1\n')
  })

  test.each(Object.keys(PROBLEMS) as ProblemCode[])(
    'a refusal with %s has its own exit code',
    async (code) => {
      const ended = await played({ listSources: () => refuse(code, 'because of that') }, [
        'sources',
      ])
      expect(ended.code).toBe(EXIT_OF_PROBLEM[code])
      expect(ended.stdout).toBe('')
      expect(ended.stderr).toContain('because of that')
    },
  )

  test('exit codes stay what they are', () => {
    expect(EXIT_OF_PROBLEM).toMatchObject({
      invalid: 2,
      not_found: 3,
      unauthenticated: 4,
      forbidden: 4,
      conflict: 5,
      changed: 5,
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

  test('the beginning of an id is enough, and only whole ids are sent', async () => {
    const { code } = await played(handlers, ['groups', 'change', 'C01D', '--state', 'resolved'])
    expect(code).toBe(0)
    const asked = server?.asked.at(-1)
    expect(asked?.params).toEqual({ id: GROUP_B })
    expect(asked?.headers['if-match']).toBe('"tag"')
  })

  test('one that can be several is refused with the candidates', async () => {
    const { code, stderr } = await played(handlers, [
      'groups',
      'change',
      '7f3a',
      '--state',
      'muted',
    ])
    expect(code).toBe(2)
    expect(stderr).toContain(GROUP_A)
    expect(stderr).toContain('7f3a0000-0000-5000-8000-00000000ffff')
    expect(server?.asked.map(({ operation }) => operation)).toEqual(['listGroups'])
  })

  test('one that was not compared with everything is enough to look, and not to change', async () => {
    const endless: Handlers = {
      ...handlers,
      listGroups: () => ({ groups: [group({ id: GROUP_B })], next: 'more' }),
    }
    expect((await played(endless, ['groups', 'show', 'c01d'])).code).toBe(0)
    for (const args of [
      ['groups', 'change', 'c01d', '--state', 'resolved'],
      ['groups', 'comment', 'c01d', 'hello'],
      ['discard', '--group', 'c01d', '--yes'],
      ['replay', 'plan', '--group', 'c01d'],
    ]) {
      const { code, stderr } = await played(endless, args)
      expect(code).toBe(2)
      expect(stderr).toContain(GROUP_B)
      expect(stderr).toContain('give the whole id')
    }
    expect(server?.asked.filter(({ body }) => body !== undefined)).toEqual([])
    const whole = await played(endless, ['groups', 'change', GROUP_B, '--state', 'resolved'])
    expect(whole.code).toBe(0)
  })

  test('the beginning of an id finds a message that is not open', async () => {
    const discarded: Handlers = {
      listDeadLetters: ({ query }) => {
        const { statuses = ['open'] } = query as { statuses?: string[] }
        const isThere = statuses.includes('discarded')
        return { deadLetters: isThere ? [deadLetter({ status: 'discarded' })] : [] }
      },
      restore: () => ({ changed: 1, skipped: [] }),
    }
    expect((await played(discarded, ['restore', MESSAGE_A.slice(0, 8)])).code).toBe(0)
    expect(server?.asked[0]?.query['statuses']).toEqual([...STATUSES])
    expect(server?.asked.at(-1)?.body).toEqual({ ids: [MESSAGE_A] })
  })

  test('one that is nowhere is not found', async () => {
    expect((await played(handlers, ['groups', 'show', 'dead'])).code).toBe(3)
    expect((await played(handlers, ['groups', 'show', '../me'])).code).toBe(2)
  })
})

describe('changes', () => {
  const handlers: Handlers = {
    discard: ({ body }) => ({
      changed: (body as { ids: string[] }).ids.length - 1,
      skipped: [MESSAGE_B],
    }),
    restore: () => ({ changed: 2, skipped: [] }),
    decide: () => ({ decided: 0, skipped: [MESSAGE_A] }),
    getReplay: () => theRun(),
    approveReplay: () => theRun({ state: 'running' }),
    getGroup: () => group(),
    changeGroup: () => group({ state: 'muted' }),
    overview: () => ({
      at: NOW,
      depth: 0,
      depthBySource: {},
      depthByClass: {},
      alerts: [],
      frozenBecause: 'The catalog was restored.',
    }),
    acknowledgeRestore: () => undefined,
  }
  const mutations = () =>
    server?.asked.filter(({ headers }) => headers['idempotency-key'] !== undefined) ?? []

  test('nothing is asked without a terminal: it says which flag to use', async () => {
    const { code, stderr } = await played(handlers, ['discard', MESSAGE_A])
    expect(code).toBe(2)
    expect(stderr).toContain('--yes')
    expect(mutations()).toEqual([])
  })

  test('no means no', async () => {
    const { code, questions } = await played(handlers, ['discard', MESSAGE_A], { answers: false })
    expect(code).toBe(1)
    expect(questions).toEqual(['Discard 1 message?'])
    expect(mutations()).toEqual([])
  })

  test('some and not all is exit code 6, none is 5, all is 0', async () => {
    expect((await played(handlers, ['discard', MESSAGE_A, MESSAGE_B, '--yes'])).code).toBe(6)
    expect((await played(handlers, ['decide', MESSAGE_A, '--as', 'open'])).code).toBe(5)
    expect((await played(handlers, ['restore', MESSAGE_A, MESSAGE_B])).code).toBe(0)
  })

  test.each([
    ['discard', MESSAGE_A],
    ['discard', '--group', GROUP_A],
    ['restore', MESSAGE_A],
    ['decide', MESSAGE_A, '--as', 'open'],
    ['groups', 'change', GROUP_A, '--state', 'muted'],
    ['groups', 'comment', GROUP_A, 'hello'],
    ['replay', 'plan', '--group', GROUP_A],
    ['replay', 'start', RUN_A],
    ['replay', 'pause', RUN_A],
    ['replay', 'resume', RUN_A],
    ['replay', 'cancel', RUN_A],
    ['replay', 'acknowledge-restore'],
    ['approve', RUN_A],
    ['token', 'create', 'ci', '--may', 'view', '--source', 'orders'],
    ['token', 'revoke', GROUP_A],
  ])('--dry-run changes nothing: %s %s', async (...args) => {
    const { code, stdout } = await played(handlers, [...args, '--dry-run'])
    expect(code).toBe(0)
    expect(stdout).toContain('Nothing was done')
    expect(mutations()).toEqual([])
  })

  test('an approval shows what it is about and names the hash that was shown', async () => {
    const { code, stderr, questions } = await played(handlers, ['approve', RUN_A], {
      answers: true,
    })
    expect(code).toBe(0)
    expect(stderr).toContain('37,980 ready')
    expect(questions).toEqual(['Approve hash sha256:abc, planned by alex?'])
    expect(mutations().at(-1)?.body).toEqual({ hash: 'sha256:abc' })
  })

  test.each<[string, Answer<'getReplayChange'>, string]>([
    [
      'a patch',
      { kind: 'patch', isHidden: false, patch: [{ op: 'replace', path: '/a', value: 'b\u001b' }] },
      '"value": "b\\u001b"',
    ],
    ['an edit', { kind: 'edit', isHidden: false, bytes: 'eyJ9', text: '{"a":1}' }, '  {"a":1}'],
    ['a hidden edit', { kind: 'edit', isHidden: true }, 'only for who may unmask'],
    ['a new key', { kind: 'force', isHidden: false }, 'under a new key'],
  ])('an approval shows what goes out instead: %s', async (_, change, shown) => {
    const changing = {
      ...handlers,
      getReplay: () => theRun({ isChanged: true }),
      getReplayChange: () => change,
    }
    const { code, stderr } = await played(changing, ['approve', RUN_A, '--yes'])
    expect(code).toBe(0)
    expect(stderr).toContain(shown)
  })

  test('an approval says when what goes out instead may not be seen', async () => {
    const changing = {
      ...handlers,
      getReplay: () => theRun({ isChanged: true }),
      getReplayChange: () => refuse('forbidden', 'Not you.'),
    }
    const { code, stderr } = await played(changing, ['approve', RUN_A, '--yes'])
    expect(code).toBe(0)
    expect(stderr).toContain('You may not see what it changes.')
  })

  test('a start that needs another person says who does what', async () => {
    const { code, stderr } = await played(
      {
        ...handlers,
        approveReplay: () =>
          refuse('conflict', 'Not by who planned it.', { needsAnotherPerson: true }),
      },
      ['replay', 'start', RUN_A, '--yes'],
    )
    expect(code).toBe(5)
    expect(stderr).toContain(`redrive approve ${RUN_A}`)
    expect(stderr).toContain('They must see the hash sha256:abc')
  })

  test('a start that nobody may make sends nobody to another person', async () => {
    const frozen = 'Replays are frozen. Look, then: redrive replay acknowledge-restore.'
    const { code, stderr } = await played(
      { ...handlers, approveReplay: () => refuse('conflict', frozen) },
      ['replay', 'start', RUN_A, '--yes'],
    )
    expect(code).toBe(5)
    expect(stderr).toContain(`Error: ${frozen}`)
    expect(stderr).not.toContain('redrive approve')
  })

  test('a restore is acknowledged by someone who sees what it means', async () => {
    const args = ['replay', 'acknowledge-restore']
    expect((await played(handlers, args)).code).toBe(2)
    expect((await played(handlers, args, { answers: false })).code).toBe(1)
    expect(mutations()).toEqual([])
    const { code, stdout, stderr, questions } = await played(handlers, args, { answers: true })
    expect(code).toBe(0)
    expect(stderr).toContain('Replays are frozen. The catalog was restored.')
    expect(questions).toEqual([expect.stringContaining('may be made again')])
    expect(stdout).toContain('Acknowledged')
    expect(mutations().map(({ operation }) => operation)).toEqual(['acknowledgeRestore'])
    expect((await played(handlers, [...args, '--yes', '--json'])).stdout).toContain('true')
  })

  test('a group is muted until a moment to come, or for so long', async () => {
    const mute = (until: string) =>
      played(handlers, ['groups', 'change', GROUP_A, '--state', 'muted', '--until', until])
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

  test('a plan with nothing to replay is a conflict', async () => {
    const { code, stdout } = await played(
      { planReplay: () => theRun({ counts: { skipped: 5 }, skipped: { too_old: 5 } }) },
      ['replay', 'plan', '--source', 'orders', '--class', 'transient', '--after', '2h'],
    )
    expect(code).toBe(5)
    expect(stdout).toContain('--override too_old')
    const selection = { query: { sources: ['orders'], class: 'transient', after: NOW - 7_200_000 } }
    expect(server?.asked[0]?.body).toEqual({ selection })
  })

  test.each([
    ['replay', 'plan'],
    ['groups', 'change', GROUP_A],
    ['replay', 'plan', '--group', GROUP_A, '--rate', 'fast'],
    ['replay', 'plan', '--group', GROUP_A, '--ramp', '1,x'],
    ['messages', 'list', '--after', 'yesterday-ish'],
    ['discard'],
    ['discard', '--text', 'declined'],
    ['restore', '--text', 'declined'],
    ['decide', MESSAGE_A, '--text', 'declined'],
    ['groups', 'list', '--limit', 'many'],
    ['groups', 'list', '--class', 'weird'],
    ['nonsense'],
  ])('what cannot be meant is a usage error: %s %s %s %s', async (...args) => {
    expect((await played(handlers, args, { answers: true })).code).toBe(2)
    expect(mutations()).toEqual([])
  })
})

describe('--text', () => {
  test.each([[['--source', 'orders']], [['--group', '7f3a']], [['--id', MESSAGE_A]]])(
    'is refused in a plan with %j before anything is sent',
    async (args) => {
      const plan = ['replay', 'plan', ...args, '--text', 'eu-bank']
      const { code, stderr } = await played({ planReplay: () => theRun() }, plan)
      expect(code).toBe(2)
      expect(stderr).toContain('--text cannot select messages for a replay')
      expect(stderr).toContain('Select by --id or --group')
      expect(server?.asked).toEqual([])
    },
  )

  test('is not listed in the help of a plan, and is explained in the help of a list', async () => {
    expect((await run(['replay', 'plan', '--help'])).stdout).not.toContain('--text')
    for (const command of ['list', 'export']) {
      const { stdout } = await run(['messages', command, '--help'])
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain('matches groups by their first message')
    }
  })
})

describe('what excludes each other', () => {
  test.each([
    [['--group', '7f3a', '--id', MESSAGE_A], '--id and filters such as --group'],
    [['--source', 'orders', '--id', MESSAGE_A], '--id and filters such as --group'],
    [['--id', MESSAGE_A, '--patch', 'fix.json', '--force'], '--patch and --force'],
  ])('a plan with %j is refused before anything is asked', async (args, told) => {
    const { code, stderr } = await played({ planReplay: () => theRun() }, [
      'replay',
      'plan',
      ...args,
    ])
    expect(code).toBe(2)
    expect(stderr).toContain(told)
    expect(stderr).toContain('exclude each other')
    expect(server?.asked).toEqual([])
  })
})

describe('comments', () => {
  test('that one was made is said, and is data for programs', async () => {
    const handlers: Handlers = { commentGroup: () => undefined }
    const args = ['groups', 'comment', GROUP_A, 'hello']
    expect((await played(handlers, args)).stdout).toBe(`Group ${GROUP_A} has a new comment.\n`)
    const { stdout } = await played(handlers, [...args, '--json'])
    expect(JSON.parse(stdout)).toEqual({ commented: GROUP_A })
  })
})

describe('a change whose answer is lost', () => {
  const RESTORE = ['restore', MESSAGE_A]
  const lost = (): never => {
    throw new Lost()
  }
  /** Answers one after the other; the last one from then on. */
  const inTurn = (...answers: readonly (() => Answer<'restore'>)[]): Handlers => {
    let turn = 0
    return {
      restore: () => {
        const answer = answers[Math.min(turn, answers.length - 1)] as () => Answer<'restore'>
        turn += 1
        return answer()
      },
    }
  }
  const done = (): Answer<'restore'> => ({ changed: 1, skipped: [] })
  const keys = () => server?.asked.map(({ headers }) => headers['idempotency-key']) ?? []

  test('is asked for again under the same name', async () => {
    const inProgress = () => refuse('in_progress', 'It is being worked on.')
    const { code, stdout, stderr } = await played(inTurn(lost, inProgress, done), RESTORE)
    expect(code).toBe(0)
    expect(stdout).toContain('1 message restored.')
    expect(stderr).toContain('Asking again; it is not done twice.')
    expect(keys()).toHaveLength(3)
    expect(new Set(keys()).size).toBe(1)
  })

  test('may have been done, and who asked is told to look', async () => {
    const { code, stdout, stderr } = await played(inTurn(lost), RESTORE)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /Error: The answer did not arrive: .+\. It may have been done: look before/,
    )
    expect(stderr).not.toContain('cannot be reached')
    expect(keys()).toHaveLength(5)
    expect(new Set(keys()).size).toBe(1)
  })

  test('to a proxy is lost, too', async () => {
    const unheard = (): never => {
      const facts = { code: 'internal', status: 504, title: 'Gateway Timeout', detail: '' } as const
      throw new ApiError({ ...facts, type: '', requestId: '' })
    }
    const { code, stderr } = await played(inTurn(unheard, done), RESTORE)
    expect(code).toBe(0)
    expect(stderr).toContain('did not arrive: 504 Gateway Timeout. Asking again')
    expect(new Set(keys()).size).toBe(1)
  })

  test('and is then refused was not done', async () => {
    const refused = () => refuse('conflict', 'Not in this status.')
    const { code, stderr } = await played(inTurn(lost, refused), RESTORE)
    expect(code).toBe(5)
    expect(stderr).toContain('Error: Not in this status.')
    expect(stderr).not.toContain('may have been done')
  })

  test('is another thing than one that nobody got', async () => {
    const { code, stderr } = await run(RESTORE, { env: { REDRIVE_URL: 'http://127.0.0.1:59999' } })
    expect(code).toBe(1)
    expect(stderr).toContain('cannot be reached')
    expect(stderr).not.toContain('Asking again')
  })

  test('because someone stopped it may have been done', async () => {
    const stop = new AbortController()
    const { code, stderr } = await played(
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
    expect(stderr).toContain('Stopped. It may have been done')
  })
})

describe('edit', () => {
  const handlers: Handlers = {
    getDeadLetter: () => detail(),
    getPayload: () => ({ bytes: 'e30=', text: '{\n  "email": "a@b"\n}', headers: {}, key: 'k' }),
    planReplay: () => theRun({ isChanged: true, counts: { planned: 1 }, skipped: {} }),
  }

  test('shows a diff, and plans a run of one that names what was looked at', async () => {
    let folder = ''
    const edit = (path: string) => {
      folder = path
      writeFileSync(path, readFileSync(path, 'utf8').replace('a@b', 'a@example.com') + '\n')
      return 0
    }
    const { code, stderr } = await played(handlers, ['edit', MESSAGE_A], { answers: true, edit })
    expect(code).toBe(0)
    expect(stderr).toContain('-   "email": "a@b"')
    expect(stderr).toContain('+   "email": "a@example.com"')
    const asked = server?.asked.at(-1) as Asked
    expect(asked.headers['if-match']).toBe('"tag"')
    const { selection, change } = asked.body as { selection: unknown; change: { edit: string } }
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
    ['they say no', { answers: false }, handlers],
    [
      'the server refuses',
      { answers: true },
      { ...handlers, planReplay: () => refuse('changed', 'It was changed.') },
    ],
    [
      'nothing can be replayed',
      { answers: true },
      { ...handlers, planReplay: () => theRun({ counts: { skipped: 1 } }) },
    ],
  ] as const)('what someone wrote is kept when %s', async (_, world, by) => {
    const { code, stderr } = await played(by, ['edit', MESSAGE_A], { ...world, edit: write })
    expect(code).not.toBe(0)
    const path = keptAt(stderr)
    expect(readFileSync(path, 'utf8')).toBe('{"email":"new"}')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    rmSync(dirname(path), { recursive: true })
  })

  test('an editor that fails loses nothing that was written', async () => {
    const edit = (path: string) => write(path) + 1
    const { code, stderr } = await played(handlers, ['edit', MESSAGE_A], { answers: true, edit })
    expect(code).toBe(1)
    const path = keptAt(stderr)
    expect(readFileSync(path, 'utf8')).toBe('{"email":"new"}')
    rmSync(dirname(path), { recursive: true })
  })

  test('nobody is let into an editor who cannot answer afterwards', async () => {
    let isOpened = false
    const edit = () => {
      isOpened = true
      return 0
    }
    const { code, stderr } = await played(handlers, ['edit', MESSAGE_A], { edit })
    expect([code, isOpened]).toEqual([2, false])
    expect(stderr).toContain('--yes')
  })

  test('what was not changed is not planned, and not kept', async () => {
    const { code, stderr } = await played(handlers, ['edit', MESSAGE_A], { answers: true })
    expect(code).toBe(1)
    expect(stderr).not.toContain('still in')
    expect(server?.asked.map(({ operation }) => operation)).not.toContain('planReplay')
  })
})

describe('which server', () => {
  test('a profile names it, and a token of the environment does not go there', async () => {
    const home = mkdtempSync(join(tmpdir(), 'redrive-profiles-'))
    server = await fakeServer({
      me: () => ({ person: 'alex', name: 'Alex', via: 'token', grants: [] }),
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
    expect(server.asked.at(-1)?.headers.authorization).toBe('Bearer rdv_profile')
    expect((await run(['whoami', '--profile', 'none'], { env })).code).toBe(0)
    expect(server.asked.at(-1)?.headers.authorization).toBeUndefined()
    expect((await run(['whoami', '--profile', 'test'], { env })).code).toBe(2)
  })

  test('a token in a file that others can read is refused', async () => {
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
    ['postgres://redrive:hunter2@db.internal/redrive', 'begins with postgres:'],
    ['https://ada:hunter2@redrive.example.com', 'without a name or password'],
    ['hunter2', 'something else'],
  ])('an address that cannot be meant is refused, and not repeated: %s', async (url, told) => {
    const { code, stderr } = await run(['sources'], { env: { REDRIVE_URL: url } })
    expect(code).toBe(2)
    expect(stderr).toContain(told)
    expect(stderr).not.toContain('hunter2')
  })

  test('a token that cannot be one is refused by where it is from, and not repeated', async () => {
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
      [['--profile', 'inline'], env, `profile inline in ${profiles}`],
      [['--profile', 'file'], env, file],
    ] as const
    for (const [args, from, told] of SOURCES) {
      for (const command of ['whoami', 'mcp']) {
        const { code, stdout, stderr } = await run([command, ...args], { env: from })
        expect(code).toBe(2)
        expect(stderr).toContain(told)
        expect(stdout + stderr).not.toContain('hunter')
      }
    }
  })

  test('a line end after a token is no part of it', async () => {
    const me = () => ({ person: 'alex', name: 'Alex', via: 'token', grants: [] }) as Answer<'me'>
    const env = { REDRIVE_TOKEN: 'rdv_1\n' }
    expect((await played({ me }, ['whoami'], { env })).code).toBe(0)
    expect(server?.asked[0]?.headers.authorization).toBe('Bearer rdv_1')
  })

  test('who has no token, or may make none, is told what makes one', async () => {
    const FOR = /--for SUBJECT .*--config FILE/
    const unknown = await played({ me: () => refuse('unauthenticated', 'Who?') }, ['whoami'])
    expect(unknown.code).toBe(4)
    expect(unknown.stderr).toMatch(FOR)
    await server?.close()
    server = undefined
    const { code, stderr } = await played(
      { createToken: () => refuse('forbidden', 'A token cannot make tokens.') },
      ['token', 'create', 'ci', '--may', 'view', '--source', 'orders'],
    )
    expect(code).toBe(4)
    expect(stderr).toContain('A token cannot make tokens.')
    expect(stderr).toMatch(FOR)
  })

  test('no server at all says what to set', async () => {
    const { code, stderr } = await run(['sources'], { env: { HOME: '/nonexistent' } })
    expect(code).toBe(2)
    expect(stderr).toContain('REDRIVE_URL')
  })

  test('a server that is not there is a failure that says so', async () => {
    const { code, stderr } = await run(['sources'], {
      env: { REDRIVE_URL: 'http://127.0.0.1:59999' },
    })
    expect(code).toBe(1)
    expect(stderr).toContain('cannot be reached')
  })
})
