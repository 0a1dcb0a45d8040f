import {
  appendFile,
  chmod,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isRedriveError } from '@redrive/core'
import type { Sink } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { file, type FileOptions } from '../src/index.ts'
import { AT, event, failureOf, never, problemsOf, refusal } from './world.ts'

async function on(
  test: (path: string, sink: Sink) => Promise<void>,
  options: Partial<FileOptions> = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-sink-'))
  const path = join(folder, 'events.jsonl')
  const sink = file({ path, ...options })
  try {
    await test(path, sink)
  } finally {
    await sink.close()
    await rm(folder, { recursive: true })
  }
}

const ids = async (path: string) =>
  (await readFile(path, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { readonly id: string }).id)

const send = (sink: Sink, ...names: readonly string[]) =>
  sink.send(
    names.map((id) => event({ id })),
    { signal: never },
  )

describe('file', () => {
  it('writes only bodies if it is configured so', () =>
    on(
      async (path, sink) => {
        const bytes = Buffer.from('{"total":\n12345678901234567890}')
        const text = event({ bytes: Buffer.from('text'), contentType: 'text/plain' })
        await sink.send([event({ bytes }), text], { signal: never })
        expect(await readFile(path, 'utf8')).toBe('{"total": 12345678901234567890}\n"text"\n')
      },
      { line: 'body' },
    ))

  it('appends one line of JSON for each event', () =>
    on(async (path, sink) => {
      const one = event({ headers: { severity: 'error', trace: 'abc' } })
      await sink.send([one, event({ id: 'b', key: 'b', lane: undefined })], { signal: never })
      const lines = (await readFile(path, 'utf8')).split('\n')
      expect(lines).toHaveLength(3)
      expect(JSON.parse(lines[0] ?? '')).toEqual({
        time: new Date(AT).toISOString(),
        severity: 'error',
        type: 'order.placed',
        id: one.id,
        key: 'order-42',
        lane: 'customer-7',
        contentType: 'application/json',
        headers: { severity: 'error', trace: 'abc' },
        body: { order: 42 },
      })
      expect(JSON.parse(lines[1] ?? '')).not.toHaveProperty('key')
    }))

  it.each([
    [
      'numbers too large for JavaScript',
      'application/json',
      '{"n":12345678901234567890,"m":1.0}',
      '"body":{"n":12345678901234567890,"m":1.0}}',
    ],
    [
      'JSON over several lines',
      'application/cloudevents+json; charset=utf-8',
      '{\r\n "a":\n 1}',
      '"body":{  "a":  1}}',
    ],
    ['invalid JSON with a JSON content type', 'application/json', '{"a":', '"body":"{\\"a\\":"}'],
    [
      'text that would end the line early',
      'application/json',
      '1}\n{"id":"forged"',
      '"body":"1}\\n{\\"id\\":\\"forged\\""}',
    ],
    ['text', 'text/plain', 'one\ntwo\u2028', '"body":"one\\ntwo\u2028"}'],
    ['bytes', 'application/json', Uint8Array.of(0xff, 0xfe), '"base64":"//4="}'],
  ])('keeps %s', (_, contentType, body, expected) =>
    on(async (path, sink) => {
      await sink.send([event({ contentType, bytes: Buffer.from(body as string) })], {
        signal: never,
      })
      const text = await readFile(path, 'utf8')
      expect(text.endsWith(`${expected}\n`)).toBe(true)
      expect(text.split('\n')).toHaveLength(2)
      expect(JSON.parse(text)).toMatchObject({ id: event().id })
    }),
  )

  it('runs concurrent sends in sequence: no line is inside another', () =>
    on(async (path, sink) => {
      const names = Array.from({ length: 50 }, (_, index) => `e${index}`)
      await Promise.all(names.map((name) => send(sink, name, `${name}b`)))
      expect(await ids(path)).toEqual(names.flatMap((name) => [name, `${name}b`]))
    }))

  it('starts a new file when the old one was renamed or removed', () =>
    on(async (path, sink) => {
      await send(sink, 'a')
      await rename(path, `${path}.1`)
      await send(sink, 'b')
      await rename(path, `${path}.2`)
      await writeFile(path, '')
      await send(sink, 'c')
      expect([await ids(`${path}.1`), await ids(`${path}.2`), await ids(path)]).toEqual([
        ['a'],
        ['b'],
        ['c'],
      ])
      await rm(path)
      await send(sink, 'd')
      expect(await ids(path)).toEqual(['d'])
    }))

  it('continues at the beginning when the file was emptied', () =>
    on(async (path, sink) => {
      await send(sink, 'a')
      await truncate(path)
      await send(sink, 'b')
      expect(await ids(path)).toEqual(['b'])
    }))

  it('does not append its line to half a line of another writer', () =>
    on(async (path, sink) => {
      await appendFile(path, '{"id":"torn')
      await send(sink, 'a')
      expect((await readFile(path, 'utf8')).split('\n')[0]).toBe('{"id":"torn')
      expect((await readFile(path, 'utf8')).split('\n')[1]).toContain('"id":"a"')
    }))

  it('creates the file for its owner and group only, and can wait for the disk', () =>
    on(
      async (path, sink) => {
        await send(sink, 'a')
        // A umask may remove more permissions, never fewer.
        expect((await stat(path)).mode & 0o137).toBe(0)
      },
      { sync: true },
    ))

  it('rejects when the folder is missing, and works when it is back', () =>
    on(async (path, sink) => {
      const missing = file({ path: join(path, 'below', 'x') })
      expect((await refusal(send(missing, 'a'))).message).toContain('ENOENT')
      await expect(missing.healthCheck?.({ signal: never })).rejects.toThrow('ENOENT')
      await expect(sink.healthCheck?.({ signal: never })).resolves.toBeUndefined()
      await send(sink, 'a')
      expect(await ids(path)).toEqual(['a'])
    }))

  it.skipIf(process.getuid?.() === 0)('is unhealthy when it may not write', () =>
    on(async (path, sink) => {
      await writeFile(path, '')
      await chmod(path, 0o400)
      await expect(sink.healthCheck?.({ signal: never })).rejects.toThrow('EACCES')
    }),
  )

  it.skipIf(process.platform !== 'linux')(
    'a full disk is a failure of class transient',
    async () => {
      const sink = file({ path: '/dev/full' })
      expect(await failureOf(send(sink, 'a'))).toMatchObject({ class: 'transient', code: 'ENOSPC' })
      await sink.close()
    },
  )

  it('leaves half a line when the disk is full, and starts the next one on a new line', () =>
    on(async (path) => {
      // This process may write at most 8 KB to a file.
      const limited = 'ulimit -f 8 && exec "$0" "$@"'
      const child = [
        process.execPath,
        '--conditions=@redrive/source',
        join(import.meta.dirname, 'full.ts'),
        path,
      ]
      const { stdout } = await promisify(execFile)('bash', ['-c', limited, ...child])
      expect(stdout).toBe('refused: EFBIG\n')
      const [torn, whole, ...rest] = (await readFile(path, 'utf8')).split('\n')
      expect(torn).toHaveLength(4_000)
      expect(JSON.parse(whole ?? '')).toMatchObject({ id: 'small' })
      expect(rest).toEqual([''])
    }))

  it('writes nothing when the signal has fired, or after a close', () =>
    on(async (path, sink) => {
      const over = { signal: AbortSignal.abort(new Error('over')) }
      expect((await refusal(sink.send([event()], over))).message).toBe('over')
      await sink.close()
      expect(isRedriveError(await refusal(send(sink, 'a')), 'CLOSED')).toBe(true)
      await expect(stat(path)).rejects.toThrow('ENOENT')
    }))

  it('reports all problems of its options together', () => {
    expect(problemsOf(() => file({ path: '', batch: -1 }))).toHaveLength(2)
  })
})
