import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Alert } from '@redrive/catalog'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { webhook } from '@redrive/sinks'
import { createAlerting, type Listener } from '../src/outgoing/alerts.ts'
import { rejection, serverDatabase } from './database-stage.ts'

const pool = await serverDatabase('redrive_server_alerts')

interface Told {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly alerts: readonly (Alert & { readonly id: string })[]
}
const told: Told[] = []
let status = 200
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (piece) => (text += String(piece)))
  request.on('end', () => {
    const { alerts } = JSON.parse(text) as Told
    told.push({ headers: request.headers, text, alerts })
    response.writeHead(status).end()
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
afterAll(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`

const KEY = Buffer.from('thirty-two bytes of a raw secret')
const secret = `whsec_${KEY.toString('base64')}`

const listener = (at: string): Listener => ({
  url: at,
  open: () => webhook({ url: at, secret, allowHttp: true, allow: ['127.0.0.1'] }),
})
const alerting = (...listeners: readonly Listener[]) =>
  createAlerting({
    pool,
    listeners: listeners.length === 0 ? [listener(url)] : listeners,
    publicUrl: 'https://redrive.test',
  })

const DEPTH: Alert = { kind: 'depth', source: 'orders', depth: 100 }
const AGE: Alert = { kind: 'age', source: 'orders', ageMs: 1_800_000 }
const kinds = () => told.map(({ alerts }) => alerts.map(({ kind }) => kind).sort())
const age = (by: string) =>
  pool.query(`update redrive_server.alert set held_at = held_at - interval '${by}'`)

beforeEach(async () => {
  told.length = 0
  status = 200
  await pool.query('delete from redrive_server.alert')
})

test('an alert is told once while it holds, although its numbers change', async () => {
  const tell = alerting()
  await tell([DEPTH, AGE])
  await tell([{ ...DEPTH, depth: 200 }, AGE])
  expect(kinds()).toEqual([['age', 'depth']])
  expect(told[0]?.alerts).toContainEqual(expect.objectContaining(DEPTH))
})

test('one that comes later is told by itself, and those of other sources are others', async () => {
  const tell = alerting()
  await tell([DEPTH])
  await tell([DEPTH, AGE, { ...DEPTH, source: 'payments' }])
  expect(kinds()).toEqual([['depth'], ['age', 'depth']])
})

test('one that was over is told again, under another id', async () => {
  const tell = alerting()
  await tell([DEPTH])
  await age('4 min')
  await tell([DEPTH])
  expect(told).toHaveLength(1)
  await age('6 min')
  await tell([DEPTH])
  expect(told).toHaveLength(2)
  expect(told[1]?.alerts[0]?.id).not.toBe(told[0]?.alerts[0]?.id)
  expect(told[1]?.headers['webhook-id']).not.toBe(told[0]?.headers['webhook-id'])
})

test('of several processes one tells', async () => {
  const processes = Array.from({ length: 8 }, () => alerting())
  await Promise.all(processes.map((tell) => tell([DEPTH, AGE])))
  expect(kinds().flat().sort()).toEqual(['age', 'depth'])
})

test('one that could not be told is told when it is asked for again', async () => {
  const tell = alerting()
  status = 500
  expect(await rejection(tell([DEPTH]))).toMatchObject({ status: 500 })
  status = 200
  await tell([DEPTH])
  await tell([DEPTH])
  expect(told).toHaveLength(2)
  expect(told[1]?.headers['webhook-id']).toBe(told[0]?.headers['webhook-id'])
})

test('one in the hands of a process that died is told by another, later', async () => {
  const tell = alerting()
  status = 500
  await rejection(tell([DEPTH]))
  status = 200
  await pool.query(`update redrive_server.alert set claimed_until = now() + interval '1 min'`)
  await tell([DEPTH])
  expect(told).toHaveLength(1)
  await pool.query(`update redrive_server.alert set claimed_until = now() - interval '1 s'`)
  await tell([DEPTH])
  expect(told).toHaveLength(2)
})

test('one that cannot be told does not keep the others from being told', async () => {
  const away = 'http://127.0.0.1:9/hook'
  const tell = alerting(listener(away), listener(url))
  await rejection(tell([DEPTH]))
  await rejection(tell([DEPTH]))
  expect(told).toHaveLength(1)
})

test('many are told in posts of a hundred', async () => {
  const many = Array.from({ length: 250 }, (_, place): Alert => ({ ...DEPTH, source: `s${place}` }))
  await alerting()(many)
  expect(told.map(({ alerts }) => alerts.length)).toEqual([100, 100, 50])
})

test('what is sent is signed, for as long as it is fresh', async () => {
  await alerting()([DEPTH])
  const { headers, text } = told.at(-1) as Told
  const content = [headers['webhook-id'], headers['webhook-timestamp'], text].join('.')
  const proof = createHmac('sha256', KEY).update(content).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${proof}`)
  expect(Math.abs(Number(headers['webhook-timestamp']) * 1_000 - Date.now())).toBeLessThan(60_000)
})

test('the address of a webhook is not kept, and what is over for a day is forgotten', async () => {
  const tell = alerting()
  await tell([DEPTH])
  const { rows } = await pool.query<{ text: string }>(
    'select alert::text as text from redrive_server.alert',
  )
  expect(rows[0]?.text).not.toContain('127.0.0.1')
  await age('25 hours')
  await tell([AGE])
  const left = await pool.query('select from redrive_server.alert')
  expect(left.rows).toHaveLength(1)
})

test('one that cannot even be opened is an error of its own', async () => {
  const open = () => webhook({ url, secret, allowHttp: true })
  const failure = await rejection(alerting({ url, open }, listener(`${url}2`))([DEPTH]))
  expect(failure.message).toContain('not public')
  expect(told).toHaveLength(1)
})
