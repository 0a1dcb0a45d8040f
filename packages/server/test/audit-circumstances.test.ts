import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'
import { auditedFilter } from '../src/operations/audit-facts.ts'

const pool = await database('redrive_server_circumstances')
const stage = await staged(pool)

describe('an audit entry', () => {
  test('contains address and id of the request, and that an agent acted', async () => {
    const { ids } = await fill(stage.catalog, 'orders')
    const response = await stage.ask('agent', `/api/v1/dead-letters/${ids[0]}`)
    expect(response.status).toBe(200)
    const { entries } = await stage.audit.read({ operation: 'getDeadLetter', limit: 1 })
    expect(entries[0]?.facts).toMatchObject({
      address: '127.0.0.1',
      request: response.headers.get('x-request-id'),
      isAgent: true,
    })
  })

  test('contains sealed values instead of the values of messages in a filter', async () => {
    const filter = 'source:orders after:1h key:4711 "bob@example.com" header:x-tenant=acme'
    const selection = { filter: `${filter} json:/card/number=4111` }
    const admin = stage.as('admin')
    await admin.call('planReplay', { body: { selection } }).catch(() => undefined)
    const body = { action: 'discard', filter: selection.filter } as const
    await admin.call('selectDeadLetters', { body }).catch(() => undefined)
    for await (const _ of admin.stream('exportDeadLetters', { query: selection }));
    const { entries } = await stage.audit.read({ limit: 50 })
    const text = JSON.stringify(entries.map(({ facts }) => facts))
    for (const secret of ['4711', 'bob@example.com', 'acme', '4111'])
      expect(text).not.toContain(`=${secret}`)
    expect(text).not.toContain('bob@example.com')
    for (const operation of ['selectDeadLetters', 'exportDeadLetters'])
      expect(entries.some((entry) => entry.operation === operation)).toBe(true)
    expect(text).toMatch(/json:\/card\/number=hmac:[0-9a-f]{32}/)
    expect(text).toContain('source:orders after:1h')
  })
})

test('a value is sealed with a key, in the same way each time', async () => {
  const sealed = await auditedFilter(stage.audit.seal, 'key:4711 key:4712 key:4711')
  const [first, other, again] = sealed.split(' ')
  expect(first).toMatch(/^key:hmac:[0-9a-f]{32}$/)
  expect(again).toBe(first)
  expect(other).not.toBe(first)
  expect(await auditedFilter(stage.audit.seal, 'class:"open')).toBe('invalid')
})

test.each([
  ['token', { authorization: 'Bearer rdv_wrong' }],
  ['session', { cookie: '__Host-redrive=wrong' }],
])('an invalid %s is logged with its address', async (kind, headers) => {
  const before = stage.logged.length
  expect((await stage.ask(undefined, '/api/v1/me', { headers })).status).toBe(401)
  const lines = stage.logged.slice(before).map((line) => JSON.parse(line) as object)
  expect(lines).toContainEqual(expect.objectContaining({ address: '127.0.0.1', kind }))
  expect(stage.logged.slice(before).join('')).not.toContain('wrong')
})

test('a request without a credential is not logged as a wrong one', async () => {
  const before = stage.logged.length
  expect((await stage.ask(undefined, '/api/v1/me')).status).toBe(401)
  expect(stage.logged.slice(before).join('')).not.toContain('credential')
})
