import { get } from 'node:http'
import type { Catalog, OpenPayload } from '@redrive/catalog'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { PiecewiseOutput, piecewiseJson } from '../src/operations/piecewise.ts'
import { database, fill, PEOPLE, staged, type StageOptions } from './http-stage.ts'

const MIB = 1_048_576
const pool = await database('redrive_server_payload')

/** Starts a server whose payloads have these pieces. */
const withPieces = (pieces: OpenPayload['pieces'], options: StageOptions = {}) =>
  staged(pool, {
    ...options,
    catalog: (made) =>
      new Proxy(made, {
        get: (target, name: keyof Catalog) =>
          name === 'payload'
            ? async (id: string) => ({ ...(await target.payload(id)), pieces })
            : bound(target, name),
      }),
  })

function bound(target: Catalog, name: keyof Catalog): unknown {
  const value: unknown = target[name]
  return typeof value === 'function' ? (value.bind(target) as unknown) : value
}

const idIn = async ({ catalog }: { readonly catalog: Catalog }, body: unknown = {}) =>
  (await fill(catalog, 'orders', 1, () => body)).ids[0] ?? ''

const pathOf = (id: string) => `/api/v1/dead-letters/${id}/payload?reason=ticket`

describe('the original body in a response', () => {
  test('is whole, with its text, when it has several pieces', async () => {
    const stage = await staged(pool)
    // Characters of three bytes: they begin in one piece and end in the next.
    const text = '€'.repeat(MIB)
    const id = await idIn(stage, Buffer.from(text))
    const answer = await stage.ask('admin', pathOf(id))
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const output = (await answer.json()) as { bytes: string; text: string; key: string }
    expect(Buffer.from(output.bytes, 'base64').equals(Buffer.from(text))).toBe(true)
    expect(output.text === text).toBe(true)
    expect(Object.keys(output).toSorted()).toEqual(['bytes', 'headers', 'key', 'text'])
  })

  test('is read while it is sent, so that its size does not matter', async () => {
    const ended = Promise.withResolvers<number>()
    let read = 0
    const stage = await withPieces(async function* () {
      try {
        // A body without an end: a server that first reads it would never respond.
        for (;;) {
          read += 1
          yield Buffer.alloc(MIB, 'a')
        }
      } finally {
        ended.resolve(read)
      }
    })
    const url = stage.url + pathOf(await idIn(stage))
    await new Promise<void>((resolve, reject) => {
      const request = get(url, { headers: { 'x-test-caller': 'admin' } }, (response) => {
        let received = 0
        response.on('data', (chunk: Buffer) => {
          received += chunk.length
          if (received < 20 * MIB) return
          response.destroy()
          resolve()
        })
      })
      request.on('error', reject)
    })
    // 20 MiB of base64 are 15 pieces. The buffers of both sockets contain some more.
    expect(await ended.promise).toBeLessThan(60)
  })

  test('is cut off without the end of the JSON text, if a piece cannot be read', async () => {
    const stage = await withPieces(async function* () {
      yield Buffer.alloc(MIB, 'a')
      throw new Error('the database is gone')
    })
    const answer = await stage.ask('admin', pathOf(await idIn(stage)))
    await expect(answer.text()).rejects.toThrow('terminated')
    await expect.poll(() => stage.logged.join('')).toContain('the database is gone')
  })
})

describe('a client that opens an original body and stops reading', () => {
  async function stalled(options: StageOptions = {}) {
    const ended = Promise.withResolvers<string>()
    const stage = await withPieces(async function* () {
      try {
        for (;;) yield Buffer.alloc(MIB, 'a')
      } finally {
        ended.resolve('ended')
      }
    }, options)
    const url = stage.url + pathOf(await idIn(stage))
    const opened = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<string>()
    const request = get(url, { headers: { 'x-test-caller': 'admin' } }, (response) => {
      response.pause()
      response.on('error', () => undefined)
      response.on('close', () => closed.resolve('closed'))
      opened.resolve()
    })
    request.on('error', () => closed.resolve('closed'))
    onTestFinished(() => void request.destroy())
    await opened.promise
    return { stage, ended: ended.promise, closed: closed.promise }
  }

  test('is disconnected after a time without progress', async () => {
    const { ended } = await stalled({ stallMs: 100 })
    expect(await ended).toBe('ended')
  })

  test('is disconnected within 10 s when the caller has lost the permission', async () => {
    const people: Record<string, Caller> = { ...PEOPLE }
    const { ended } = await stalled({ people })
    const began = performance.now()
    delete people['admin']
    expect(await ended).toBe('ended')
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  test('is disconnected when the server stops', async () => {
    const { stage, ended } = await stalled()
    await stage.app.close()
    expect(await ended).toBe('ended')
  })
})

describe('an output in pieces', () => {
  const textOf = async (pieces: readonly Uint8Array[], withText = true) => {
    const open = async function* () {
      yield* pieces
    }
    const output = new PiecewiseOutput<{ bytes: string; text?: string; key: string }>(
      { key: 'k' },
      open,
      { withText },
    )
    let json = ''
    for await (const part of piecewiseJson(output)) json += part
    return JSON.parse(json) as unknown
  }

  test.each([
    ['no bytes', []],
    ['one byte each', [...Buffer.from('a"\\\u0000€🙂')].map((byte) => Uint8Array.of(byte))],
    ['a byte order mark', [Buffer.from('\ufeff{}')]],
  ])('has the same bytes and text for %s', async (_, pieces) => {
    const whole = Buffer.concat(pieces)
    const text = whole.toString()
    expect(await textOf(pieces)).toEqual({ bytes: whole.toString('base64'), key: 'k', text })
    expect(await textOf(pieces, false)).toEqual({ bytes: whole.toString('base64'), key: 'k' })
  })

  test.each([
    ['invalid', [Buffer.from([0xff, 0x41])]],
    ['invalid in a later piece', [Buffer.from('a'), Buffer.from([0xc3])]],
    ['a half of a character at the end', [Buffer.from('a€').subarray(0, 3)]],
  ])('has no text if the bytes are %s', async (_, pieces) => {
    const bytes = Buffer.concat(pieces).toString('base64')
    expect(await textOf(pieces)).toEqual({ bytes, key: 'k' })
  })
})
