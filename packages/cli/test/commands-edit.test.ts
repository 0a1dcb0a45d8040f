import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type RecordedRequest,
  type FakeServer,
  fakeServer,
  type Handlers,
  refuse,
} from './fake-server.ts'
import { detail, MESSAGE_A, theRun } from './things.ts'
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
