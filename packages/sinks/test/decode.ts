/** Strict readers of requests, written from the specifications and not from the sinks. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { expect } from 'vitest'
import type { Arrived } from './world.ts'

type Json = Readonly<Record<string, unknown>>

function object(value: unknown, what: string, keys: readonly string[]): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${what} is not an object`)
  }
  const strange = Object.keys(value).filter((key) => !keys.includes(key))
  if (strange.length > 0) throw new Error(`${what} has unknown fields: ${strange.join(', ')}`)
  return value as Json
}

function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`)
  return value as readonly unknown[]
}

function texts(value: unknown, what: string): Readonly<Record<string, string>> {
  for (const [key, text] of Object.entries(value as Json)) {
    if (!/^[a-zA-Z_]\w*$/.test(key)) throw new Error(`${what}: ${key} is not a label`)
    if (typeof text !== 'string') throw new Error(`${what}: ${key} is not text`)
  }
  return value as Readonly<Record<string, string>>
}

export interface LokiStream {
  readonly stream: Readonly<Record<string, string>>
  readonly values: readonly (readonly [string, string, Readonly<Record<string, string>>])[]
}

/** https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs */
export function readLoki({ method, path, headers, body }: Arrived): readonly LokiStream[] {
  expect([method, path]).toEqual(['POST', '/loki/api/v1/push'])
  expect(headers['content-type']).toBe('application/json')
  const { streams } = object(JSON.parse(body.toString()), 'push', ['streams'])
  return list(streams, 'streams').map((one) => {
    const { stream, values } = object(one, 'stream', ['stream', 'values'])
    const labels = texts(stream, 'labels')
    if (Object.keys(labels).length === 0) throw new Error('a stream without labels')
    const entries = list(values, 'values').map((value) => {
      const [at, line, metadata, ...rest] = list(value, 'value')
      if (typeof at !== 'string' || !/^\d{19}$/.test(at))
        throw new Error(`no nanoseconds: ${String(at)}`)
      if (typeof line !== 'string') throw new Error('no line')
      if (rest.length > 0) throw new Error('too long')
      return [at, line, texts(metadata, 'metadata')] as const
    })
    return { stream: labels, values: entries }
  })
}

export interface SentryEnvelope {
  readonly header: Json
  readonly items: readonly { readonly header: Json; readonly payload: Json }[]
}

/** https://develop.sentry.dev/sdk/foundations/envelopes/: lines, and payloads with a given length. */
export function readEnvelope({ method, headers, body }: Arrived): SentryEnvelope {
  expect(method).toBe('POST')
  expect(headers['content-type']).toBe('application/x-sentry-envelope')
  let at = 0
  const line = (): string => {
    const end = body.indexOf(10, at)
    const text = body.subarray(at, end === -1 ? body.length : end).toString()
    at = end === -1 ? body.length : end + 1
    return text
  }
  const header = JSON.parse(line()) as Json
  const items: { header: Json; payload: Json }[] = []
  while (at < body.length) {
    const item = JSON.parse(line()) as Json
    const { length } = item
    if (typeof length !== 'number') throw new Error('an item without its length')
    const payload = body.subarray(at, at + length)
    if (payload.length !== length) throw new Error('an item is shorter than its length')
    at += length
    if (at < body.length && body[at] !== 10) throw new Error('an item is longer than its length')
    at += 1
    items.push({ header: item, payload: JSON.parse(payload.toString()) as Json })
  }
  if (items.filter((item) => item.header['type'] === 'event').length > 1) {
    throw new Error('more than one event in an envelope')
  }
  return { header, items }
}

const RECORD_FIELDS = [
  'timeUnixNano',
  'observedTimeUnixNano',
  'severityNumber',
  'severityText',
  'eventName',
  'body',
  'attributes',
  'traceId',
  'spanId',
  'flags',
]

/** Returns the values of a list of key-value pairs. */
function attributes(value: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    list(value, 'attributes').map((one) => {
      const { key, value: any } = object(one, 'attribute', ['key', 'value'])
      return [String(key), anyValue(any)]
    }),
  )
}

function anyValue(value: unknown): unknown {
  const kinds = ['stringValue', 'boolValue', 'intValue', 'doubleValue', 'bytesValue']
  const entries = Object.entries(object(value, 'value', kinds))
  const [kind, found] = entries[0] ?? []
  if (entries.length !== 1) throw new Error('a value must have exactly one kind')
  if (kind === 'intValue' && typeof found !== 'string')
    throw new Error('64-bit integers must be text')
  return found
}

/** https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
export function readOtlp({ method, path, headers, body }: Arrived) {
  expect([method, path]).toEqual(['POST', '/v1/logs'])
  expect(headers['content-type']).toBe('application/json')
  const { resourceLogs } = object(JSON.parse(body.toString()), 'request', ['resourceLogs'])
  return list(resourceLogs, 'resourceLogs').map((one) => {
    const { resource, scopeLogs } = object(one, 'resourceLogs', ['resource', 'scopeLogs'])
    const records = list(scopeLogs, 'scopeLogs').flatMap((scoped) => {
      const { logRecords } = object(scoped, 'scopeLogs', ['scope', 'logRecords'])
      return list(logRecords, 'logRecords').map(readRecord)
    })
    const named = attributes(object(resource, 'resource', ['attributes'])['attributes'])
    return { resource: named, records }
  })
}

function readRecord(value: unknown) {
  const record = object(value, 'record', RECORD_FIELDS)
  for (const name of ['timeUnixNano', 'observedTimeUnixNano']) {
    const at = record[name]
    if (typeof at !== 'string' || !/^\d{19}$/.test(at)) throw new Error(`${name} is not a fixed64`)
  }
  if (typeof record['severityNumber'] !== 'number') throw new Error('enums must be numbers')
  return { ...record, body: anyValue(record['body']), attributes: attributes(record['attributes']) }
}

/** https://github.com/standard-webhooks/standard-webhooks, the receiver's side. */
export function verifyWebhook({ headers, body }: Arrived, secret: string, nowMs: number): boolean {
  const id = String(headers['webhook-id'])
  const timestamp = String(headers['webhook-timestamp'])
  if (!/^\d+$/.test(timestamp) || Math.abs(nowMs / 1_000 - Number(timestamp)) > 300) return false
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const expected = createHmac('sha256', key).update(signed).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .some((one) => {
      const [version, mac = ''] = one.split(',')
      const given = Buffer.from(mac, 'base64')
      return version === 'v1' && given.length === 32 && timingSafeEqual(given, expected)
    })
}
