import type { ApiError } from '@redrive/api'
import { RedriveError } from '@redrive/core'
import { MemoryBroker, memorySource } from '@redrive/memory'
import { beforeAll, describe, expect, test } from 'vitest'
import { database, type Filled, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_reading')
const optional = (pointer: string) => ({ pointer, optional: true })
/** The masks of today. Dead letters of the tests were stored without them. */
const stage = await staged(pool, {
  reading: {
    sources: {
      orders: {
        mask: ['/card/number', optional('/pin'), optional('/items/0/code')],
        maskHeaders: ['X-Customer'],
      },
    },
  },
})
const { as, catalog } = stage

const CARD = '4111111111111111'
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (error as ApiError).problem.code,
  )

const stored = (body: unknown) =>
  fill(catalog, 'orders', 1, () => body, {
    mask: [],
    message: `card ${CARD} of bob@example.com declined`,
    key: `customer ${CARD}`,
    headers: { 'x-api-key': 'k-77', 'x-customer': 'c-77', 'x-note': `see ${CARD}`, trace: 't-1' },
  })

const show = async ({ ids }: Filled, who = 'operator') =>
  as(who).call('getDeadLetter', { params: { id: ids[0] ?? '' } })

describe('a mask of today', () => {
  test('hides values of bodies that were stored without it', async () => {
    const { body } = await show(await stored({ order: 1, card: { number: CARD } }))
    expect(body).toEqual({ isHidden: false, preview: { order: 1, card: { number: '***' } } })
  })

  test.each([
    ['another case', { Card: { Number: CARD } }, { Card: { Number: '***' } }],
    ['a list', [{ card: { number: CARD } }], [{ card: { number: '***' } }]],
    ['JSON in a text', `{"card":{"number":"${CARD}"}}`, '{"card":{"number":"***"}}'],
  ])('hides values in %s', async (_, body, preview) => {
    expect((await show(await stored(body))).body).toEqual({ isHidden: false, preview })
  })

  test('that finds nothing hides the whole body and is named', async () => {
    const { body } = await show(await stored({ payment: { nr: CARD, pin: 1 } }))
    expect(body).toEqual({ isHidden: false, hiddenBy: '/card/number' })
    expect((await show(await stored({ payment: 1 }), 'viewer')).body).toEqual({ isHidden: true })
  })

  test('that found nothing at the ingest leaves no values in the database', async () => {
    const made = await fill(catalog, 'orders', 1, () => ({ nr: 'secret-1' }), { mask: ['/card'] })
    expect((await show(made)).body).toEqual({ isHidden: false, hiddenBy: '/card' })
    const { rows } = await pool.query(
      'select preview::text from redrive_catalog.dead_letter_payload',
    )
    expect(JSON.stringify(rows)).not.toContain('secret-1')
  })

  test('cannot be probed with a filter', async () => {
    await stored({ card: { number: CARD, name: 'Bob' } })
    const list = (who: string, filter: string) =>
      codeOf(
        as(who).call('listDeadLetters', { query: { filter: `source:orders after:1h ${filter}` } }),
      )
    expect(await list('operator', 'json:/card/number=x-77')).toBe('forbidden')
    expect(await list('operator', 'json:/CARD/number=x-77')).toBe('forbidden')
    expect(await list('operator', 'json:/-1/card/number=x-77')).toBe('forbidden')
    expect(await list('operator', 'header:x-customer=c-77')).toBe('forbidden')
    expect(await list('operator', 'header:x-api-key=k-77')).toBe('forbidden')
    expect(await list('operator', 'json:/card/name=Bob header:trace=t-1')).toBe('done')
    expect(await list('admin', 'json:/card/number=x-77 header:x-api-key=k-77')).toBe('done')
    const body = {
      action: 'discard',
      filter: 'source:orders after:1h header:x-api-key=k-77',
    } as const
    expect(await codeOf(as('operator').call('selectDeadLetters', { body }))).toBe('forbidden')
  })

  test.each(['0', '00', '+0', '-1', ' 0'])(
    'of a position cannot be probed with the position %j, which the database accepts',
    async (position) => {
      await stored({ card: { number: CARD }, items: [{ code: 'q-77' }] })
      const list = (who: string) => {
        const filter = `source:orders after:1h json:"/items/${position}/code=q-77"`
        return as(who).call('listDeadLetters', { query: { filter } })
      }
      expect((await list('admin')).deadLetters).not.toEqual([])
      expect(await codeOf(list('operator'))).toBe('forbidden')
    },
  )

  test.each([
    [
      'adds a value where it finds nothing',
      [{ op: 'add', path: '/card', value: { number: 1 } }],
      'forbidden',
    ],
    [
      'replaces an object above it',
      [{ op: 'replace', path: '/card', value: { number: 1 } }],
      'forbidden',
    ],
    ['copies it in another case', [{ op: 'copy', from: '/CARD/Number', path: '/x' }], 'forbidden'],
    ['copies an item of a list', [{ op: 'copy', from: '/0/card', path: '/x' }], 'forbidden'],
    ['replaces the value', [{ op: 'replace', path: '/card/number', value: 1 }], 'done'],
    ['adds an optional value', [{ op: 'add', path: '/pin', value: 1 }], 'done'],
  ] as const)('is kept by a patch that %s: %j is %s', async (_, patch, code) => {
    const { ids } = await stored({ card: { number: CARD } })
    const change = { patch: [...patch] }
    const body = { selection: { ids: [...ids] }, change }
    expect(await codeOf(as('operator').call('planReplay', { body }))).toBe(code)
  })
})

test('the selection of a run hides masked values, secret headers and detected values', async () => {
  const { ids } = await stored({ card: { number: 'n-88', name: 'Bob' } })
  const { key } = await as('admin').call('getDeadLetter', { params: { id: ids[0] ?? '' } })
  expect(key).toBe('customer [hidden: card number]')
  const words = [
    'source:orders after:1h json:/card/number=n-88 json:/card/name=Bob',
    `header:x-api-key=k-77 header:trace=t-1 text:bob@example.com key:"customer ${CARD}"`,
  ]
  const body = { selection: { filter: words.join(' ') } }
  const run = await as('admin').call('planReplay', { body })
  expect(run.selection).toMatchObject({ query: { json: { '/card/number': 'n-88' } } })
  const params = { id: run.id }
  const shown = await as('operator').call('getReplay', { params })
  expect(shown.selection).toMatchObject({
    query: {
      json: { '/card/number': '***', '/card/name': 'Bob' },
      headers: { 'x-api-key': '***', trace: 't-1' },
      texts: ['[hidden: e-mail]'],
      key: 'customer [hidden: card number]',
    },
  })
  expect((await as('viewer').call('getReplay', { params })).selection).toMatchObject({
    query: { json: { '/card/number': '***', '/card/name': '***' } },
  })
})

test('the preview of fingerprint rules and a split show no hidden values', async () => {
  const made = await stored({ card: { number: CARD } })
  const rules = [{ name: 'cards', match: { text: 'declined' }, group: 'declined cards' }]
  const found = await as('viewer').call('previewFingerprints', { body: { rules } })
  expect(JSON.stringify(found)).toContain('card [hidden: card number] of [hidden: e-mail] declined')
  expect(JSON.stringify(found)).not.toContain(CARD)
  const split = {
    params: { id: made.group },
    body: { filter: 'header:x-api-key=k-77', name: 'with the key', reason: 'a test' },
  }
  expect(await codeOf(as('operator').call('splitGroup', split))).toBe('forbidden')
  expect(await codeOf(as('admin').call('splitGroup', split))).toBe('done')
})

test.each([
  ...['accesstoken', 'AUTHTOKEN', 'dbpassword', 'x-clientsecret', 'xapikey', 'sessioncookie'],
  ...['authToken', 'Proxy-Authorization', 'x_api_key', 'aws.credentials', 'privateKey'],
])('the header %s is hidden in every source', async (name) => {
  const made = await fill(catalog, 'orders', 1, undefined, { headers: { [name]: 's-77' } })
  expect((await show(made)).headers).toMatchObject({ [name]: '***' })
})

test.each(['x-token-count', 'cookies-accepted', 'secretary', 'monkey', 'password-changed-at'])(
  'the header %s is shown',
  async (name) => {
    const made = await fill(catalog, 'orders', 1, undefined, { headers: { [name]: 's-77' } })
    expect((await show(made)).headers).toMatchObject({ [name]: 's-77' })
  },
)

test('secret headers are also hidden in a table in a header', async () => {
  const table = { Authorization: 's-77', 'x-customer': ['s-77'], path: '/orders' }
  const headers = {
    request: { list: [table], cookie: { sid: 's-77' } },
    text: JSON.stringify(table),
    // The catalog keeps the first 1,000 characters.
    long: { cookie: 's-77', trace: 't'.repeat(2_000) },
    plain: { path: '/orders', note: 'the cookie' },
  }
  const made = await fill(catalog, 'orders', 1, undefined, { headers })
  const hidden = { Authorization: '***', 'x-customer': '***', path: '/orders' }
  expect((await show(made)).headers).toMatchObject({
    request: JSON.stringify({ list: [hidden], cookie: '***' }),
    text: JSON.stringify(hidden),
    long: '***',
    plain: '{"path":"/orders","note":"the cookie"}',
  })
  const list = (who: string, value: object) => {
    const filter = `source:orders after:1h header:${JSON.stringify(`text=${JSON.stringify(value)}`)}`
    return as(who).call('listDeadLetters', { query: { filter } })
  }
  expect((await list('admin', table)).deadLetters).toHaveLength(1)
  expect(await codeOf(list('operator', table))).toBe('forbidden')
  expect(await codeOf(list('operator', { path: '/orders' }))).toBe('done')
})

describe('texts of messages', () => {
  let made: Filled
  let all: string

  beforeAll(async () => {
    made = await stored({ card: { number: CARD }, note: 'call bob@example.com' })
    const params = { id: made.group }
    const id = { id: made.ids[0] ?? '' }
    const lines: unknown[] = []
    const filter = { filter: `group:${made.group}` }
    for await (const one of as('admin').stream('exportDeadLetters', { query: filter }))
      lines.push(one)
    const shown = [
      await as('admin').call('getDeadLetter', { params: id }),
      await as('admin').call('listDeadLetters', { query: filter }),
      await as('admin').call('listGroups', { query: { sources: ['orders'], limit: 200 } }),
      await as('admin').call('getGroup', { params }),
      await as('admin').call('explainGroup', { params }),
      await as('admin').call('listCycles', { params: id }),
      await as('admin').call('overview', {}),
    ]
    all = JSON.stringify({ export: lines, shown })
  })

  test('contain no card number, address or secret header for any caller', () => {
    expect(all).toContain('card [hidden: card number] of [hidden: e-mail] declined')
    expect(all).toContain('see [hidden: card number]')
    expect(all).toContain(`{"export":[{"id":"${made.ids[0]}"`)
    for (const secret of [CARD, 'bob@example.com', 'k-77', 'c-77', 'Basic secret'])
      expect(all).not.toContain(secret)
  })

  test('are shown whole with a reason, which the audit log keeps', async () => {
    const params = { id: made.ids[0] ?? '' }
    const query = { reason: 'ticket 7: wrong amount' }
    const payload = await as('admin').call('getPayload', { params, query })
    expect(payload.text).toContain(CARD)
    expect(payload.headers).toMatchObject({ 'x-api-key': 'k-77', 'x-customer': 'c-77' })
    const { entries } = await as('admin').call('listAudit', { query: { subject: params.id } })
    expect(entries[0]).toMatchObject({ operation: 'getPayload', facts: { reason: query.reason } })
    for (const reason of ['', '  ', undefined])
      expect(
        await codeOf(as('admin').call('getPayload', { params, query: { reason } as never })),
      ).toBe('invalid')
  })
})

test('the items of a run name their message without hidden values', async () => {
  const { ids } = await stored({ order: 1, card: { number: CARD } })
  const run = await as('operator').call('planReplay', { body: { selection: { ids: [...ids] } } })
  const { items } = await as('viewer').call('listReplayItems', { params: { id: run.id } })
  const [message] = (await as('viewer').call('listDeadLetters', { query: { filter: 'after:1h' } }))
    .deadLetters
  expect(items).toMatchObject([
    { key: message?.key, message: message?.message, group: message?.group },
  ])
  expect(JSON.stringify(items)).not.toContain(CARD)
  const params = { id: ids[0] ?? '' }
  const replays = await as('viewer').call('listDeadLetterReplays', { params })
  expect(replays.items).toEqual(items)
})

test('the reason of a pause has no hidden values', async () => {
  const { ids } = await stored({ order: 1, card: { number: CARD } })
  const run = await as('operator').call('planReplay', { body: { selection: { ids: [...ids] } } })
  const params = { id: run.id }
  await as('approver').call('approveReplay', { params, body: { hash: run.hash } })
  // A routing key of a message is in the error of the broker.
  const source = memorySource({ broker: new MemoryBroker(), queue: 'orders' })
  const text = 'No queue accepts messages with the routing key "user.bob@example.com".'
  source.publish = () => Promise.reject(new RedriveError('UNROUTABLE', text))
  await catalog.replays.replayer({ sources: [{ source }] }).turn()
  await source.close()
  const read = await as('viewer').call('getReplay', { params })
  expect(read).toMatchObject({ state: 'paused', pauseReason: expect.any(String) as unknown })
  const { runs } = await as('viewer').call('listReplays', { query: { states: ['paused'] } })
  expect(JSON.stringify([read, runs])).not.toContain('bob@example.com')
})

test('the caller learns whether they may approve their own runs', async () => {
  expect(await as('operator').call('me', {})).toMatchObject({ canApproveOwn: false })
  const alone = await staged(pool, { approval: 'anyone' })
  expect(await alone.as('operator').call('me', {})).toMatchObject({ canApproveOwn: true })
  expect(await alone.as('agent').call('me', {})).toMatchObject({ canApproveOwn: false })
})

test('masks and detectors are listed, for the sources that the caller can view', async () => {
  const listed = await as('viewer').call('listMasks', {})
  expect(listed).toEqual({
    sources: [
      {
        source: 'orders',
        paths: [
          { pointer: '/card/number', isOptional: false },
          { pointer: '/pin', isOptional: true },
          { pointer: '/items/0/code', isOptional: true },
        ],
        headers: ['x-customer'],
      },
    ],
    detectors: ['privateKey', 'token', 'card', 'iban', 'email'],
  })
  expect((await as('elsewhere').call('listMasks', {})).sources).toEqual([])
})
