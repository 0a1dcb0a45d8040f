import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { webhook } from '../src/index.ts'
import { respond, type Arrived, AT, event, never, onServer } from './world.ts'

type IsGenuine = (
  headers: Arrived['headers'],
  body: Uint8Array,
  secret: string,
  nowMs: number,
) => boolean

/** Returns the receiver's code from the documentation. */
async function shownCode(): Promise<IsGenuine> {
  const page = await readFile(join(import.meta.dirname, '../../../docs/sinks.md'), 'utf8')
  const code = /```js\n(.*?)```/s.exec(page)?.[1] ?? ''
  const folder = await mkdtemp(join(tmpdir(), 'redrive-docs-'))
  try {
    const path = join(folder, 'receiver.mjs')
    await writeFile(path, code)
    const module = (await import(pathToFileURL(path).href)) as { readonly isGenuine: IsGenuine }
    return module.isGenuine
  } finally {
    await rm(folder, { recursive: true })
  }
}

describe('the page about sinks', () => {
  it('shows a receiver that accepts our requests and rejects forged or old ones', async () => {
    const isGenuine = await shownCode()
    const [secret, other] = [7, 8].map(
      (byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`,
    )
    if (secret === undefined || other === undefined) throw new Error('no secrets')
    await onServer(
      respond(204),
      ({ url }) =>
        webhook({
          url,
          secret: [other, secret],
          allowHttp: true,
          allow: ['127.0.0.1'],
          clock: new FakeClock({ now: AT }),
        }),
      async (sink, server) => {
        await sink.send([event()], { signal: never })
        const [arrived] = server.arrived
        if (arrived === undefined) throw new Error('nothing arrived')
        const { headers, body } = arrived
        const late = AT + 301_000
        expect(isGenuine(headers, body, secret, AT)).toBe(true)
        expect(isGenuine(headers, body, other, AT)).toBe(true)
        expect(isGenuine(headers, Buffer.from('forged'), secret, AT)).toBe(false)
        expect(isGenuine(headers, body, secret.replace('B', 'C'), AT)).toBe(false)
        expect(isGenuine(headers, body, secret, late)).toBe(false)
        expect(isGenuine({ ...headers, 'webhook-id': 'other' }, body, secret, AT)).toBe(false)
        expect(isGenuine({}, body, secret, AT)).toBe(false)
        expect(isGenuine({ ...headers, 'webhook-timestamp': 'soon' }, body, secret, AT)).toBe(false)
      },
    )
  })
})
