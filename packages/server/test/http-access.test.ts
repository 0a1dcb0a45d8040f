import { ApiError, type Input, type PlainOperation } from '@redrive/api'
import { ROUTES } from '@redrive/api/internal'
import { describe, expect, test } from 'vitest'
import { openApi } from '../src/http/openapi.ts'
import { database, fill, staged } from './http-stage.ts'

const stage = await staged(await database('redrive_server_access'))
await fill(stage.catalog, 'billing', 3)
await fill(stage.catalog, 'orders')

const DAY = 86_400_000
const recent = { query: { filter: 'source:orders after:24h' } }
const byDeadLetter = async () => {
  const [id = ''] = (await fill(stage.catalog, 'orders')).ids
  return { params: { id } }
}

/** Returns the operations in the OpenAPI document. */
function documented(): readonly string[] {
  const paths = openApi()['paths'] as Record<string, Record<string, { operationId: string }>>
  return Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
}

/** Sends a request that the server must deny. */
async function denied(
  operation: PlainOperation,
  who: string,
  input: Input<PlainOperation>,
): Promise<void> {
  await expect(stage.as(who).call(operation, input)).rejects.toBeInstanceOf(ApiError)
}

describe('the routes', () => {
  test('are those of the OpenAPI document', () => {
    expect(documented().toSorted()).toEqual(Object.keys(ROUTES).toSorted())
  })

  test('are the only ones except the OpenAPI document and the reference', () => {
    const paths = Object.values(ROUTES).map(
      ({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    )
    const others = [
      'GET /api/reference',
      'GET /api/reference/',
      'GET /api/reference/js/scalar.js',
      'GET /api/v1/openapi.json',
    ]
    expect(stage.routes.toSorted()).toEqual([...paths, ...others].toSorted())
  })
})

describe('a denied request', () => {
  test('is audited with caller, operation and source', async () => {
    const { params } = await byDeadLetter()
    await denied('getPayload', 'operator', { params, query: { reason: 'ticket 7' } })
    const { entries } = await stage.audit.read({
      person: 'operator',
      operation: 'getPayload',
      limit: 1,
    })
    expect(entries).toMatchObject([{ outcome: 'denied', facts: { action: 'view_unmasked' } }])
    await denied('getDeadLetter', 'elsewhere', { params })
    const { entries: hidden } = await stage.audit.read({ person: 'elsewhere', limit: 1 })
    expect(hidden).toMatchObject([{ outcome: 'denied', source: 'orders', subject: params.id }])
  })

  test('does not reveal whether the resource exists', async () => {
    const { params } = await byDeadLetter()
    const missing = { params: { id: '00000000-0000-0000-0000-000000000000' } }
    const [one, other] = await Promise.all(
      [params, missing.params].map(async ({ id }) => {
        const answer = await stage.ask('elsewhere', `/api/v1/dead-letters/${id}`)
        const { requestId: _, ...rest } = (await answer.json()) as Record<string, unknown>
        return rest
      }),
    )
    expect(one).toEqual(other)
  })
})

describe('lists', () => {
  test('contain only what the caller can view', async () => {
    const client = stage.as('elsewhere')
    const { sources } = await client.call('listSources', {})
    expect(sources.map(({ source }) => source)).toEqual(['billing'])
    const { groups } = await client.call('listGroups', {})
    expect(new Set(groups.map(({ source }) => source))).toEqual(new Set(['billing']))
    const all = await client.call('listDeadLetters', { query: { filter: 'after:0' } })
    expect(new Set(all.deadLetters.map(({ source }) => source))).toEqual(new Set(['billing']))
    expect((await client.call('listDeadLetters', recent)).deadLetters).toEqual([])
    expect((await client.call('listReplays', {})).runs).toEqual([])
    const { depthBySource, alerts } = await client.call('overview', {})
    expect(Object.keys(depthBySource)).toEqual(['billing'])
    expect(alerts.every(({ source }) => source === 'billing')).toBe(true)
    const span = { per: 'hour', after: Date.now() - DAY, before: Date.now() } as const
    const { points } = await client.call('trend', { query: span })
    expect(points.reduce((total, { count }) => total + count, 0)).toBe(3)
  })
})
