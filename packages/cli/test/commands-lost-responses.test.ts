import { type Output, ApiError } from '@redrive/api'
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, type Handlers, Lost, refuse } from './fake-server.ts'
import { MESSAGE_A } from './things.ts'
import { run, type WorldOptions } from './world.ts'

let server: FakeServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function runWith(handlers: Handlers, args: readonly string[], options: WorldOptions = {}) {
  server ??= await fakeServer(handlers)
  return run(args, { ...options, env: { ...server.env, ...options.env } })
}

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
