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
  test('says how far it is and what became of all of them', async () => {
    const { code, stdout, stderr } = await watched([
      [running(1), running(50), done({ resolved: 100 })],
    ])
    expect(code).toBe(0)
    expect(stdout).toBe('Done: 100 resolved\n')
    expect(stderr).toMatch(/1 % {2}1 of 100/)
    expect(stderr).not.toContain('█')
  })

  test('is a bar on a terminal', async () => {
    const { stderr } = await watched([[running(50), done({ resolved: 100 })]], [], { isTTY: true })
    expect(stderr).toContain('████████████░░░░░░░░░░░░  50 %  50 of 100')
  })

  test('what refailed or is unknown is partial success, and says what to do', async () => {
    const { code, stdout } = await watched([[done({ resolved: 90, refailed: 7, unknown: 3 })]])
    expect(code).toBe(6)
    expect(stdout).toContain(`redrive replay show ${RUN_A} --items refailed`)
    expect(stdout).toContain('redrive decide')
    expect((await watched([[done({ refailed: 1 })]])).code).toBe(1)
  })

  test('a stream that ends too early is asked for again', async () => {
    const { code } = await watched([[running(10)], [], [running(60)], [done({ resolved: 100 })]])
    expect(code).toBe(0)
    expect(server?.asked.filter(({ operation }) => operation === 'watchReplay')).toHaveLength(4)
  })

  test('a run that pauses is an end only for who waits', async () => {
    const paused = theRun({
      state: 'paused',
      pausedBecause: 'too many refailed',
      counts: { resolved: 5, queued: 5 },
    })
    const waited = await watched([[running(1), paused]], ['--wait'])
    expect(waited.code).toBe(5)
    const followed = await watched([[paused, running(50), done({ resolved: 100 })]])
    expect(followed.code).toBe(0)
    expect(followed.stderr).toContain('too many refailed')
  })

  test('--timeout leaves the run alone', async () => {
    const { code, stderr } = await watched(
      Array.from({ length: 100_000 }, () => [running(1)]),
      ['--timeout', '200ms'],
    )
    expect(code).toBe(7)
    expect(stderr).toContain(`redrive replay pause ${RUN_A}`)
    expect(
      server?.asked.every(
        ({ operation }) => operation.startsWith('get') || operation.startsWith('watch'),
      ),
    ).toBe(true)
  })

  test('Ctrl-C leaves the run alone and says how to stop it', async () => {
    server = await fakeServer({ getReplay: () => running(0), watchReplay: () => [running(1)] })
    const child = start(['replay', 'watch', RUN_A], server.env)
    const ending = ended(child)
    await until(
      'it watches',
      () => server?.asked.some(({ operation }) => operation === 'watchReplay') === true,
    )
    child.kill('SIGINT')
    const { code, stderr } = await ending
    expect(code).toBe(130)
    expect(stderr).toContain(`redrive replay pause ${RUN_A}`)
    expect(server.asked.map(({ operation }) => operation)).not.toContain('pauseReplay')
  })

  test('start with --wait approves and follows', async () => {
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
    [['--wait', '--timeout', '25d'], '24d at most'],
    [['--timeout', '10m'], 'add --wait'],
  ])('a start with %j is refused before anything is asked', async (args, told) => {
    server = await fakeServer({ getReplay: () => theRun(), approveReplay: () => running(0) })
    const { code, stderr } = await run(['replay', 'start', RUN_A, '--yes', ...args], {
      env: server.env,
    })
    expect(code).toBe(2)
    expect(stderr).toContain(told)
    expect(server.asked).toEqual([])
  })

  test('the longest timeout is no timeout of a moment', async () => {
    const { code } = await watched([[running(1)], [done({ resolved: 100 })]], ['--timeout', '24d'])
    expect(code).toBe(0)
  })
})
