import type { Output } from '@redrive/api'
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, type Handlers, refuse } from './fake-server.ts'
import { group, GROUP_A, MESSAGE_A, MESSAGE_B, RUN_A, theRun } from './things.ts'
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

describe('comments', () => {
  test('confirms a new comment, also as JSON', async () => {
    const handlers: Handlers = { commentGroup: () => undefined }
    const args = ['groups', 'comment', GROUP_A, 'hello']
    expect((await runWith(handlers, args)).stdout).toBe(`Added a comment to group ${GROUP_A}.\n`)
    const { stdout } = await runWith(handlers, [...args, '--json'])
    expect(JSON.parse(stdout)).toEqual({ commented: GROUP_A })
  })
})
