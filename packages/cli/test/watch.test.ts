import type { Run } from '@redrive/api'
import { until } from '@redrive/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { ended, start } from './child.ts'
import { type FakeServer, fakeServer, type Handlers } from './fake-server.ts'
import { RUN_A, theRun } from './things.ts'
import { run, type WorldOptions } from './world.ts'

let server: FakeServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const running = (resolved: number, over: Partial<Run['counts']> = {}) =>
  theRun({ state: 'running', counts: { resolved, queued: 100 - resolved, ...over }, skipped: {} })
const done = (counts: Partial<Run['counts']>) => theRun({ state: 'done', counts, skipped: {} })

async function watched(
  events: readonly (readonly Run[])[],
  args: readonly string[] = [],
  options: WorldOptions = {},
) {
  const left = [...events]
  const handlers: Handlers = { getReplay: () => running(0), watchReplay: () => left.shift() ?? [] }
  server = await fakeServer(handlers)
  return run(['replay', 'watch', RUN_A, ...args], { ...options, env: server.env })
}

describe('watching a run', () => {
  test('prints the progress and the outcomes', async () => {
    const { code, stdout, stderr } = await watched([
      [running(1), running(50), done({ resolved: 100 })],
    ])
    expect(code).toBe(0)
    expect(stdout).toBe('Done: 100 resolved\n')
    expect(stderr).toMatch(/1 % {2}1 of 100/)
    expect(stderr).not.toContain('█')
  })

  test('draws a bar on a terminal', async () => {
    const { stderr } = await watched([[running(50), done({ resolved: 100 })]], [], { isTTY: true })
    expect(stderr).toContain('████████████░░░░░░░░░░░░  50 %  50 of 100')
  })

  test('describes each step of a run whose consumers confirm nothing', async () => {
    const unproven = (state: Run['state'], counts: Partial<Run['counts']>) => {
      const made = theRun({ state, counts, skipped: {} })
      const options = { ...made.options, canary: [10], proof: 'returns', outcomeTimeoutMs: 300_000 }
      return { ...made, options } as Run
    }
    const { code, stdout, stderr } = await watched(
      [
        [
          unproven('running', { published: 10, queued: 90 }),
          unproven('running', { not_returned: 10, published: 40, queued: 50 }),
          unproven('running', { not_returned: 10, published: 88, failed_again: 2 }),
          unproven('done', { not_returned: 98, failed_again: 2 }),
        ],
      ],
      [],
      { isTTY: true, columns: 200 },
    )
    expect(stderr).toContain(
      'Sent 10 of 100. 0 returned. If they do not return, the other 90 follow within 5 min.',
    )
    expect(stdout).toContain('Done: 2 failed again · 98 not returned')
    expect(stdout).toContain(
      '98 messages sent and not returned within 5 min. Redrive cannot prove that the consumer handled them.',
    )
    expect(code).toBe(6)
  })

  test('exits with partial success for failed or unknown outcomes and prints what to do', async () => {
    const { code, stdout } = await watched([[done({ resolved: 90, failed_again: 7, unknown: 3 })]])
    expect(code).toBe(6)
    expect(stdout).toContain(`redrive replay show ${RUN_A} --items failed_again`)
    expect(stdout).toContain('redrive set-outcome')
    expect((await watched([[done({ failed_again: 1 })]])).code).toBe(1)
  })

  test('reconnects when the stream ends too early', async () => {
    const { code } = await watched([[running(10)], [], [running(60)], [done({ resolved: 100 })]])
    expect(code).toBe(0)
    expect(server?.requests.filter(({ operation }) => operation === 'watchReplay')).toHaveLength(4)
  })

  test('ends when the run pauses, but only with --wait', async () => {
    const paused = theRun({
      state: 'paused',
      pauseReason: 'too many failures',
      counts: { resolved: 5, queued: 5 },
    })
    const waited = await watched([[running(1), paused]], ['--wait'])
    expect(waited.code).toBe(5)
    const followed = await watched([[paused, running(50), done({ resolved: 100 })]])
    expect(followed.code).toBe(0)
    expect(followed.stderr).toContain('too many failures')
  })

  test('does not stop the run after --timeout', async () => {
    const { code, stderr } = await watched(
      Array.from({ length: 100_000 }, () => [running(1)]),
      ['--timeout', '200ms'],
    )
    expect(code).toBe(7)
    expect(stderr).toContain(`redrive replay pause ${RUN_A}`)
    expect(
      server?.requests.every(
        ({ operation }) => operation.startsWith('get') || operation.startsWith('watch'),
      ),
    ).toBe(true)
  })

  test('does not stop the run on Ctrl-C and prints how to pause it', async () => {
    server = await fakeServer({ getReplay: () => running(0), watchReplay: () => [running(1)] })
    const child = start(['replay', 'watch', RUN_A], server.env)
    const ending = ended(child)
    await until(
      'the command watches the run',
      () => server?.requests.some(({ operation }) => operation === 'watchReplay') === true,
    )
    child.kill('SIGINT')
    const { code, stderr } = await ending
    expect(code).toBe(130)
    expect(stderr).toContain(`redrive replay pause ${RUN_A}`)
    expect(server.requests.map(({ operation }) => operation)).not.toContain('pauseReplay')
  })

  test('approves and follows a run with start --wait', async () => {
    server = await fakeServer({
      getReplay: () => theRun(),
      approveReplay: () => running(0),
      watchReplay: () => [running(20), done({ resolved: 100 })],
    })
    const { code, stdout } = await run(['replay', 'start', RUN_A, '--yes', '--wait', '--json'], {
      env: server.env,
    })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ state: 'done' })
  })

  test.each([
    [['--wait', '--timeout', '10x'], 'such as 10m'],
    [['--wait', '--timeout', '0s'], 'such as 10m'],
    [['--wait', '--timeout', '25d'], 'at most 24d'],
    [['--timeout', '10m'], 'requires --wait'],
  ])('rejects a start with %j before any request', async (args, expected) => {
    server = await fakeServer({ getReplay: () => theRun(), approveReplay: () => running(0) })
    const { code, stderr } = await run(['replay', 'start', RUN_A, '--yes', ...args], {
      env: server.env,
    })
    expect(code).toBe(2)
    expect(stderr).toContain(expected)
    expect(server.requests).toEqual([])
  })

  test('does not time out immediately with the longest timeout', async () => {
    const { code } = await watched([[running(1)], [done({ resolved: 100 })]], ['--timeout', '24d'])
    expect(code).toBe(0)
  })
})
