import { type ProblemCode, PROBLEMS } from '@redrive/api'
import { STATUSES } from '@redrive/api/enums'
import { parseFilter } from '@redrive/api/filter'
import { afterEach, describe, expect, test } from 'vitest'
import { EXIT_OF_PROBLEM } from '../src/exit.ts'
import { type FakeServer, fakeServer, type Handlers, Lost, refuse } from './fake-server.ts'
import {
  deadLetter,
  group,
  GROUP_A,
  GROUP_B,
  groups,
  MESSAGE_A,
  MESSAGE_B,
  RUN_A,
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
