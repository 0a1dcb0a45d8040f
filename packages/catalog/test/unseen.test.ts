import { describe, expect, test } from 'vitest'
import { migrated, rows } from './rig.ts'
import { staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_unseen')

const bodyOf = (value: unknown) => ({ delivery: { bytes: Buffer.from(JSON.stringify(value)) } })
const SECRET = '4111-secret'

describe('why an item was skipped', () => {
  const patches = {
    'a test that fails': { op: 'test', path: '/card', value: '1' },
    'a test of a whole part': { op: 'test', path: '/holder', value: {} },
    'a path inside a text': { op: 'add', path: '/card/x', value: 1 },
    'a part of a text': { op: 'remove', path: '/card/0' },
    'a path that does not exist': { op: 'replace', path: '/none', value: 1 },
    'a move from nowhere': { op: 'move', path: '/card', from: '/none' },
    'a copy into a text': { op: 'copy', path: '/card/0/x', from: '/holder' },
  } as const

  for (const [name, operation] of Object.entries(patches)) {
    test(`contains nothing of the body: ${name}`, async () => {
      const source = `skipped ${name}`
      const stage = await staged(pool, source, 1, () =>
        bodyOf({ card: SECRET, holder: { name: SECRET } }),
      )
      const { id, skipped } = await stage.plan({ change: { patch: [operation] } })
      expect(skipped).toEqual({ patch_failed: 1 })
      const [item] = await stage.replays.items({ run: id })
      const where = `operation 1 (${operation.op} ${operation.path})`
      const why =
        operation.op === 'test'
          ? 'the body has a different value there'
          : 'a path of the operation does not exist in the body'
      expect(item?.reason).toBe(`patch_failed: ${where}: ${why}`)
    })
  }

  test('contains only property names of the schema', async () => {
    const body = { orders: { 'ada@example.com': { price: 'x' } }, 'bob@example.com': 1 }
    const stage = await staged(pool, 'named', 1, () => bodyOf(body))
    const price = { type: 'object', properties: { price: { type: 'number' } } }
    const orders = { type: 'object', additionalProperties: price }
    const schema = { type: 'object', properties: { orders } }
    await stage.replays.setSchema({ source: 'named', schema })
    const { id } = await stage.plan()
    const [item] = await stage.replays.items({ run: id })
    expect(item?.reason).toBe('schema_invalid: body/orders/*/price must be number')
  })
})

describe('a patch', () => {
  test('is encrypted if payloads are, and is applied unchanged', async () => {
    const keys = { current: 'k1', get: () => Buffer.alloc(32, 7) }
    const stage = await staged(pool, 'sealed', 1, () => bodyOf({ card: 'x' }), { keys })
    const patch = [{ op: 'replace', path: '/card', value: SECRET }] as const
    const run = await stage.started({ change: { patch } })
    const [row] = await rows(
      pool,
      'select change::text as change from redrive_catalog.replay_run where id = $1',
      [run.id],
    )
    expect(row?.['change']).not.toContain(SECRET)
    expect(row?.['change']).not.toContain('/card')
    expect(await stage.replays.change(run.id)).toEqual({ patch })
    await stage.ended(run.id)
    const sent = stage.wire.sent[0]?.deadLetter.delivery.bytes ?? []
    expect(JSON.parse(Buffer.from(sent).toString())).toEqual({ card: SECRET })
  })

  test('has another hash in each plan, which reveals nothing about the changed body', async () => {
    const stage = await staged(pool, 'hashed', 1, () => bodyOf({ pin: 1234 }))
    const change = { patch: [{ op: 'add', path: '/x', value: 1 }] } as const
    const [one, other] = [await stage.plan({ change }), await stage.plan({ change })]
    expect(one.hash).not.toBe(other.hash)
  })
})
