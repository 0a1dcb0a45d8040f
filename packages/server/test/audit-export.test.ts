import { createHmac } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { file, webhook } from '@redrive/sinks'
import type { Sink } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createAudit } from '../src/audit/audit.ts'
import { hashOf, type Link } from '../src/audit/chain.ts'
import { exportAudit, exportLag, type ExportTarget } from '../src/audit/export.ts'
import { startAuditExport } from '../src/start/audit-export.ts'
import { createLog } from '../src/start/log.ts'
import { entry } from './audit-stage.ts'
import { rejection, serverDatabase } from './database-stage.ts'
import { serveDatabase, serving } from './serve-stage.ts'

const pool = await serverDatabase('redrive_server_audit_export')
const audit = createAudit({ pool })
const folder = await mkdtemp(join(tmpdir(), 'redrive-export-'))
afterAll(() => rm(folder, { recursive: true }))

interface Line extends Omit<Link, 'facts'> {
  readonly id: string
  readonly time: string
  readonly previous: string
  readonly facts: Record<string, unknown>
}
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders
  readonly text: string
}
const received: ReceivedRequest[] = []
let status = 200
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (piece) => (text += String(piece)))
  request.on('end', () => {
    received.push({ headers: request.headers, text })
    response.writeHead(status).end()
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
afterAll(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-path`
const KEY = Buffer.from('thirty-two bytes of a raw secret')
const secret = `whsec_${KEY.toString('base64')}`

const never = new AbortController().signal
const hook: ExportTarget = {
  kind: 'webhook',
  address: url,
  open: () => webhook({ url, secret, allowHttp: true, allow: ['127.0.0.1'] }),
}
let files = 0
function fileTarget() {
  const path = join(folder, `audit-${++files}.jsonl`)
  const open = () => file({ path, mode: 0o600, sync: true, line: 'body' })
  return { path, target: { kind: 'file', address: path, open } as const }
}
const write = async (count: number, facts: Record<string, unknown> = {}) => {
  const places = Array.from({ length: count }, (_, at) => at)
  await Promise.all(places.map((at) => audit.write(entry({ facts: { at, ...facts } }))))
}
const newest = async () => (await audit.read({ limit: 1 })).entries[0]?.sequence ?? 0
const sequencesOf = (lines: readonly Line[]) => lines.map(({ sequence }) => sequence)
const from = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at)

/** Exports everything that exists, so that a test sees only its own entries. Returns the last sequence. */
async function caughtUp(target: ExportTarget): Promise<number> {
  await exportAudit(pool, target, never)
  received.length = 0
  return newest()
}

beforeEach(() => {
  received.length = 0
  status = 200
})

describe('export to a file', () => {
  test('appends each entry once, as a line that only the server may read', async () => {
    const { path, target } = fileTarget()
    await write(3)
    await exportAudit(pool, target, never)
    await write(2)
    await exportAudit(pool, target, never)
    const lines = linesOf(await readFile(path, 'utf8'))
    expect(sequencesOf(lines)).toEqual(from(1, await newest()))
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('contains what the hash covers', async () => {
    const { path, target } = fileTarget()
    await audit.write(entry({ facts: { text: 'a "quoted"\nline', 10: 'ä' } }))
    await exportAudit(pool, target, never)
    for (const line of linesOf(await readFile(path, 'utf8'))) {
      const { id, time, previous, facts, ...rest } = line
      expect(hashOf({ ...rest, facts: JSON.stringify(facts) }, previous)).toBe(id)
      expect(new Date(time).getTime()).toBe(rest.at)
    }
  })

  test('starts a new file after a rotation', async () => {
    const { path, target } = fileTarget()
    const last = await caughtUp(target)
    await rename(path, `${path}.1`)
    await write(2)
    await exportAudit(pool, target, never)
    expect(sequencesOf(linesOf(await readFile(path, 'utf8')))).toEqual(from(last + 1, last + 2))
  })
})

describe('export', () => {
  test('does not keep the claim of a target that cannot be opened', async () => {
    const { path, target } = fileTarget()
    await write(1)
    const closed = () => {
      throw new Error('cannot open')
    }
    await rejection(exportAudit(pool, { ...target, open: closed }, never))
    await exportAudit(pool, target, never)
    expect(sequencesOf(linesOf(await readFile(path, 'utf8'))).at(-1)).toBe(await newest())
  })

  test('reports a position after the end of the log as an error and as a delay', async () => {
    const { target } = fileTarget()
    await write(1)
    await caughtUp(target)
    const set = `update redrive_server.audit_export set sequence = sequence + $1`
    await pool.query(set, [1_000_000])
    await write(1)
    const last = await newest()
    expect((await rejection(exportAudit(pool, target, never))).message).toContain(
      `but the newest entry of the audit log is ${last}`,
    )
    expect(await exportLag(pool, [target])).toMatchObject([{ entries: last }])
    await pool.query(set, [-1_000_000])
    await exportAudit(pool, target, never)
    expect(await exportLag(pool, [target])).toMatchObject([{ entries: 0 }])
  })
})

describe('export to a webhook', () => {
  test('sends signed batches, and the position without the URL is in the database', async () => {
    const last = await caughtUp(hook)
    await write(3)
    await exportAudit(pool, hook, never)
    expect(received).toHaveLength(1)
    const [{ headers, text }] = received as [ReceivedRequest]
    expect(sequencesOf(linesOf(text))).toEqual(from(last + 1, last + 3))
    expect(headers['content-type']).toBe('application/x-ndjson')
    const content = [headers['webhook-id'], headers['webhook-timestamp'], text].join('.')
    const signature = createHmac('sha256', KEY).update(content).digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signature}`)
    const { rows } = await pool.query<{ text: string }>(
      'select string_agg(one::text, $1) as text from redrive_server.audit_export as one',
      [' '],
    )
    expect(rows[0]?.text).toContain(String(last + 3))
    expect(rows[0]?.text).not.toContain('secret-path')
  })

  test('limits the size of a request', async () => {
    const last = await caughtUp(hook)
    await write(10, { text: 'x'.repeat(60_000) })
    await write(400)
    await exportAudit(pool, hook, never)
    const batches = received.map(({ text }) => linesOf(text).length)
    expect(batches.slice(0, 2)).toEqual([4, 4])
    expect(Math.max(...batches)).toBe(200)
    expect(Math.max(...received.map(({ text }) => text.length))).toBeLessThan(262_144)
    const sequences = received.flatMap(({ text }) => sequencesOf(linesOf(text)))
    expect(sequences).toEqual(from(last + 1, last + 410))
  })

  test('repeats what was not accepted, and a batch with more entries has another id', async () => {
    const last = await caughtUp(hook)
    await write(2)
    status = 503
    expect(await rejection(exportAudit(pool, hook, never))).toMatchObject({ status: 503 })
    await rejection(exportAudit(pool, hook, never))
    status = 200
    await write(1)
    await exportAudit(pool, hook, never)
    await exportAudit(pool, hook, never)
    const [first, again, more] = received as [ReceivedRequest, ReceivedRequest, ReceivedRequest]
    expect(received).toHaveLength(3)
    expect(again.headers['webhook-id']).toBe(first.headers['webhook-id'])
    expect(more.headers['webhook-id']).not.toBe(first.headers['webhook-id'])
    expect(sequencesOf(linesOf(more.text))).toEqual(from(last + 1, last + 3))
  })

  test('sends entries again with the same ids after a crash before the position was stored', async () => {
    await caughtUp(hook)
    await write(2)
    const crashing = { ...hook, open: () => failingAfterSend(hook.open()) }
    await rejection(exportAudit(pool, crashing, never))
    await exportAudit(pool, hook, never)
    const [first, second] = received.map(({ text }) => linesOf(text).map(({ id }) => id))
    expect(first).toHaveLength(2)
    expect(second).toEqual(first)
  })

  test('is done by one of several processes, in order', async () => {
    const last = await caughtUp(hook)
    await write(5)
    await Promise.all(Array.from({ length: 6 }, () => exportAudit(pool, hook, never)))
    const sequences = received.flatMap(({ text }) => sequencesOf(linesOf(text)))
    expect(sequences).toEqual(from(last + 1, last + 5))
  })

  test('continues after the claim of a crashed process has expired', async () => {
    await caughtUp(hook)
    await write(1)
    const claimUntil = (time: string) =>
      pool.query(
        `update redrive_server.audit_export set claim = gen_random_uuid(), claimed_until = now() + interval '${time}'`,
      )
    await claimUntil('1 min')
    await exportAudit(pool, hook, never)
    expect(received).toHaveLength(0)
    await claimUntil('-1 s')
    await exportAudit(pool, hook, never)
    expect(received).toHaveLength(1)
  })
})

describe('the export of a server', () => {
  test('reports failures and how far it is behind', async () => {
    await caughtUp(hook)
    await write(2)
    // The clock of the entry is the clock of the database, so the test makes the entries older.
    await pool.query(`
      alter table redrive_server.audit disable trigger all;
      update redrive_server.audit set at_ms = at_ms - 420000 where sequence > ${(await newest()) - 2};
      alter table redrive_server.audit enable always trigger audit_kept`)
    const [lag] = await exportLag(pool, [hook])
    expect(lag).toMatchObject({ kind: 'webhook', entries: 2 })
    expect(lag?.ageMs).toBeGreaterThanOrEqual(420_000)
    let output = ''
    const log = createLog({ to: { write: (text: string) => (output += text) } })
    status = 500
    const exports = startAuditExport({ pool, targets: [hook], log, everyMs: 10 })
    await until('three attempts', () => received.length >= 3)
    status = 200
    await until('the export', async () => (await exportLag(pool, [hook]))[0]?.entries === 0)
    await exports.stop()
    expect(output.match(/Cannot export the audit log to the webhook/g)).toHaveLength(1)
    expect(output.match(/webhook is 7 min behind. 2 entries wait/g)).toHaveLength(1)
    expect(output).not.toContain('secret-path')
  })

  test('writes the file that the config names, and a metric', async () => {
    const path = join(folder, 'served.jsonl')
    const { base } = await serveDatabase('redrive_server_audit_export_serve')
    const served = await serving({ ...base, audit: { export: { file: path } } }, 'api,watch')
    const name = 'laptop'
    await served.json('/api/v1/tokens', { name, actions: ['view'], sources: ['*'], days: 1 })
    const read = async () => linesOf(await readFile(path, 'utf8').catch(() => ''))
    await until('two entries', async () => (await read()).length === 2)
    const [first] = await read()
    expect(first).toMatchObject({ operation: 'createToken', outcome: 'requested', sequence: 1 })
    // The position is stored after the file has the entries.
    const metrics = await until(
      'metrics without waiting entries',
      async () => (await served.get('/metrics')).text(),
      { accept: (text) => text.includes('redrive_audit_export_waiting_entries{target="file"} 0') },
    )
    expect(metrics).toContain('redrive_audit_export_delay_seconds{target="file"} 0')
  })
})

/** A sink of a process that crashes after the receiver has accepted the entries. */
const failingAfterSend = (sink: Sink): Sink => ({
  name: sink.name,
  batch: sink.batch,
  send: async (events, options) => {
    await sink.send(events, options)
    throw new Error('crashed')
  },
  close: () => sink.close(),
})
