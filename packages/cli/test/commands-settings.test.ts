import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Output } from '@redrive/api'
import { afterEach, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, type Handlers, refuse } from './fake-server.ts'
import { MESSAGE_A } from './things.ts'
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
