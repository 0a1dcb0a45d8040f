import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Alert } from '@redrive/catalog'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { webhook } from '@redrive/sinks'
import { createAlerting, type AlertTarget } from '../src/alerts/deliver-alerts.ts'
import { rejection, serverDatabase } from './database-stage.ts'

const pool = await serverDatabase('redrive_server_alerts')

interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly alerts: readonly (Alert & { readonly id: string })[]
}
const received: ReceivedRequest[] = []
let status = 200
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (piece) => (text += String(piece)))
  request.on('end', () => {
    const { alerts } = JSON.parse(text) as ReceivedRequest
    received.push({ headers: request.headers, text, alerts })
    response.writeHead(status).end()
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
afterAll(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`

const KEY = Buffer.from('thirty-two bytes of a raw secret')
const secret = `whsec_${KEY.toString('base64')}`

const target = (at: string): AlertTarget => ({
  url: at,
  open: () => webhook({ url: at, secret, allowHttp: true, allow: ['127.0.0.1'] }),
})
const alerting = (...targets: readonly AlertTarget[]) =>
  createAlerting({
    pool,
    listeners: targets.length === 0 ? [target(url)] : targets,
    publicUrl: 'https://redrive.test',
  })

const DEPTH: Alert = { kind: 'depth', source: 'orders', depth: 100 }
const AGE: Alert = { kind: 'age', source: 'orders', ageMs: 1_800_000 }
const kinds = () => received.map(({ alerts }) => alerts.map(({ kind }) => kind).sort())
const age = (by: string) =>
  pool.query(`update redrive_server.alert set held_at = held_at - interval '${by}'`)

beforeEach(async () => {
  received.length = 0
  status = 200
  await pool.query('delete from redrive_server.alert')
})

test('an active alert is delivered once, even if its numbers change', async () => {
  const deliver = alerting()
  await deliver([DEPTH, AGE])
  await deliver([{ ...DEPTH, depth: 200 }, AGE])
  expect(kinds()).toEqual([['age', 'depth']])
  expect(received[0]?.alerts).toContainEqual(expect.objectContaining(DEPTH))
})

test('later alerts and alerts of other sources are delivered separately', async () => {
  const deliver = alerting()
  await deliver([DEPTH])
  await deliver([DEPTH, AGE, { ...DEPTH, source: 'payments' }])
  expect(kinds()).toEqual([['depth'], ['age', 'depth']])
})

test('an alert that becomes active again is delivered with a new id', async () => {
  const deliver = alerting()
  await deliver([DEPTH])
  await age('4 min')
  await deliver([DEPTH])
  expect(received).toHaveLength(1)
  await age('6 min')
  await deliver([DEPTH])
  expect(received).toHaveLength(2)
  expect(received[1]?.alerts[0]?.id).not.toBe(received[0]?.alerts[0]?.id)
  expect(received[1]?.headers['webhook-id']).not.toBe(received[0]?.headers['webhook-id'])
})

test('only one of several processes delivers an alert', async () => {
  const processes = Array.from({ length: 8 }, () => alerting())
  await Promise.all(processes.map((deliver) => deliver([DEPTH, AGE])))
  expect(kinds().flat().sort()).toEqual(['age', 'depth'])
})

test('a failed delivery is repeated by the next call', async () => {
  const deliver = alerting()
  status = 500
  expect(await rejection(deliver([DEPTH]))).toMatchObject({ status: 500 })
  status = 200
  await deliver([DEPTH])
  await deliver([DEPTH])
  expect(received).toHaveLength(2)
  expect(received[1]?.headers['webhook-id']).toBe(received[0]?.headers['webhook-id'])
})

test('the claim of a crashed process expires, and another process delivers the alert', async () => {
  const deliver = alerting()
  status = 500
  await rejection(deliver([DEPTH]))
  status = 200
  await pool.query(`update redrive_server.alert set claimed_until = now() + interval '1 min'`)
  await deliver([DEPTH])
  expect(received).toHaveLength(1)
  await pool.query(`update redrive_server.alert set claimed_until = now() - interval '1 s'`)
  await deliver([DEPTH])
  expect(received).toHaveLength(2)
})

test('an unreachable target does not prevent the delivery to others', async () => {
  const unreachable = 'http://127.0.0.1:9/hook'
  const deliver = alerting(target(unreachable), target(url))
  await rejection(deliver([DEPTH]))
  await rejection(deliver([DEPTH]))
  expect(received).toHaveLength(1)
})

test('many alerts are delivered in requests of a hundred', async () => {
  const many = Array.from({ length: 250 }, (_, place): Alert => ({ ...DEPTH, source: `s${place}` }))
  await alerting()(many)
  expect(received.map(({ alerts }) => alerts.length)).toEqual([100, 100, 50])
})

test('requests are signed with the current time', async () => {
  await alerting()([DEPTH])
  const { headers, text } = received.at(-1) as ReceivedRequest
  const content = [headers['webhook-id'], headers['webhook-timestamp'], text].join('.')
  const signature = createHmac('sha256', KEY).update(content).digest('base64')
  expect(headers['webhook-signature']).toBe(`v1,${signature}`)
  expect(Math.abs(Number(headers['webhook-timestamp']) * 1_000 - Date.now())).toBeLessThan(60_000)
})

test('the URL of a webhook is not stored, and ended alerts are deleted after a day', async () => {
  const deliver = alerting()
  await deliver([DEPTH])
  const { rows } = await pool.query<{ text: string }>(
    'select alert::text as text from redrive_server.alert',
  )
  expect(rows[0]?.text).not.toContain('127.0.0.1')
  await age('25 hours')
  await deliver([AGE])
  const left = await pool.query('select from redrive_server.alert')
  expect(left.rows).toHaveLength(1)
})

test('a target that cannot be opened causes a separate error', async () => {
  const open = () => webhook({ url, secret, allowHttp: true })
  const failure = await rejection(alerting({ url, open }, target(`${url}2`))([DEPTH]))
  expect(failure.message).toContain('not public')
  expect(received).toHaveLength(1)
})
