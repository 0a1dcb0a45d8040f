import { describe, expect, test } from 'vitest'
import { migrated, rows } from './rig.ts'
import { failedAgain, staged, Wire } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay_forged')

const ORIGINAL = Buffer.from('{"order":"original"}')
const FORGED = Buffer.from('{"order":"forged"}')

type Stage = Awaited<ReturnType<typeof staged>>

/** One dead letter whose replay is published and has no outcome yet. */
async function published(name: string, request: Parameters<Stage['started']>[0] = {}) {
  const stage = await staged(pool, name, 1, () => ({ delivery: { bytes: ORIGINAL } }))
  const [id = ''] = await stage.ids()
  stage.wire.answer = () => 'silent'
  const run = await stage.started(request)
  await stage.replayer.turn()
  const [sent] = stage.wire.sent
  if (sent === undefined) throw new Error('Nothing was sent.')
  return { stage, id, run, sent }
}

const withBody = (bytes: Buffer, { deadLetter, replayId }: Stage['wire']['sent'][number]) => {
  const back = failedAgain(deadLetter, replayId)
  return { ...back, delivery: { ...back.delivery, bytes } }
}

const bodyOf = async (stage: Stage, id: string) =>
  Buffer.from((await stage.catalog.deadLetter(id))?.drained.delivery.bytes ?? []).toString()

const bodiesBefore = async (id: string) => {
  const text = 'select bytes from redrive_catalog.payload_before where dead_letter_id = $1'
  const found = await rows<{ bytes: Buffer }>(pool, text, [id])
  return found.map(({ bytes }) => bytes.toString())
}

const itemsOf = (stage: Stage, run: string) => stage.replays.items({ run })

describe('a message with the replay id of another source', () => {
  test.each([
    ['another body', FORGED],
    ['the same body', ORIGINAL],
  ])('is a dead letter of the source it arrived in: %s', async (name, bytes) => {
    const { stage, id, run, sent } = await published(`orders ${name}`)
    const other = await staged(pool, `billing ${name}`, 0)
    other.wire.back(withBody(bytes, sent))
    expect(await other.catalog.ingest(other.wire)).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'replaying', cycle: 1 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'published' }])
    const [arrived = ''] = await other.ids()
    expect(await bodyOf(other, arrived)).toBe(bytes.toString())
    expect(await other.unsettledCount()).toBe(1)
    // The real outcome still counts.
    stage.wire.back(withBody(ORIGINAL, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 0, failedAgain: 1 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'open', cycle: 2 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
  })

  test('is kept when the replay has its outcome already', async () => {
    const { stage, sent } = await published('orders over')
    stage.wire.back(withBody(ORIGINAL, sent))
    await stage.catalog.ingest(stage.wire)
    const other = await staged(pool, 'billing over', 0)
    other.wire.back(withBody(ORIGINAL, sent))
    expect(await other.catalog.ingest(other.wire)).toMatchObject({ added: 1, known: 0 })
  })

  test('does not change the replay when both arrive at the same time', async () => {
    const { stage, id, run, sent } = await published('orders together')
    const other = await staged(pool, 'billing together', 0)
    other.wire.back(withBody(FORGED, sent))
    stage.wire.back(withBody(ORIGINAL, sent))
    const both = await Promise.all([
      other.catalog.ingest(other.wire),
      stage.catalog.ingest(stage.wire),
    ])
    expect(both).toMatchObject([
      { added: 1, failedAgain: 0 },
      { added: 0, failedAgain: 1 },
    ])
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'failed_again' }])
  })
})

describe('a message with a replay id of the same source', () => {
  test('is another dead letter when its body is not the published one', async () => {
    const { stage, id, run, sent } = await published('changed')
    stage.wire.back(withBody(FORGED, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'replaying', cycle: 1 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'published' }])
    const arrived = (await stage.ids()).find((one) => one !== id) ?? ''
    expect(await bodyOf(stage, arrived)).toBe(FORGED.toString())
    expect(await stage.unsettledCount()).toBe(2)
  })

  test('is another dead letter when its body differs and the replay has its outcome', async () => {
    const { stage, sent } = await published('changed late')
    stage.wire.back(withBody(ORIGINAL, sent))
    await stage.catalog.ingest(stage.wire)
    stage.wire.back(withBody(FORGED, sent), withBody(ORIGINAL, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, known: 1 })
  })

  test('is another dead letter when nothing was published yet', async () => {
    const stage = await staged(pool, 'early', 1, () => ({ delivery: { bytes: ORIGINAL } }))
    const [id = ''] = await stage.ids()
    const run = await stage.started()
    const [item] = await itemsOf(stage, run.id)
    const detail = await stage.catalog.deadLetter(id)
    if (item === undefined || detail === undefined) throw new Error('Expected an item.')
    const sent = { deadLetter: detail.drained, replayId: item.replayId }
    stage.wire.back(withBody(FORGED, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'queued' }])
  })

  test('keeps the original next to an edited body, and accepts only the edited one', async () => {
    const edit = Buffer.from('{"order":"edited"}')
    const name = 'edited'
    const stage = await staged(pool, name, 1, () => ({ delivery: { bytes: ORIGINAL } }))
    const ids = await stage.ids()
    const [id = ''] = ids
    stage.wire.answer = () => 'silent'
    await stage.started({ selection: { ids }, change: { edit } })
    await stage.replayer.turn()
    const [sent] = stage.wire.sent
    if (sent === undefined) throw new Error('Nothing was sent.')
    stage.wire.back(withBody(ORIGINAL, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    stage.wire.back(withBody(edit, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 0, failedAgain: 1 })
    expect(await bodyOf(stage, id)).toBe(edit.toString())
    expect(await bodiesBefore(id)).toEqual([ORIGINAL.toString()])
  })

  test('is recognised after a worker published it a second time', async () => {
    const { stage, id, run, sent } = await published('twice', { change: { force: true } })
    await pool.query(
      `update redrive_catalog.replay_item set state = 'publishing', lease_until = now() - interval '1 second' where run_id = $1`,
      [run.id],
    )
    await stage.replayer.turn()
    expect(stage.wire.sent).toHaveLength(2)
    stage.wire.back(withBody(ORIGINAL, sent))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 0, failedAgain: 1 })
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
    expect(await bodiesBefore(id)).toEqual([])
  })
})

const mismatchesOf = async (source: string) => {
  const text = 'select mismatches::integer from redrive_catalog.source where name = $1'
  const [row] = await rows<{ mismatches: number }>(pool, text, [source])
  return row?.mismatches
}

/** Replay ids that a writer of the queue can make, who sees the runs but not the published messages. */
const forgeries = (own: string, other: string) => {
  const [id = '', key = '', mac = ''] = own.split('.')
  const [, , otherMac = ''] = other.split('.')
  const changed = `${mac.startsWith('A') ? 'B' : 'A'}${mac.slice(1)}`
  return {
    'the id alone': id,
    'another signature': `${id}.${key}.${changed}`,
    'the signature of another replay': `${id}.${key}.${otherMac}`,
    'another key': `${id}.${Number(key) + 1}.${mac}`,
    'a shorter signature': own.slice(0, -1),
    'a longer signature': `${own}A`,
  }
}
const FORGERIES = Object.keys(forgeries('', '')) as (keyof ReturnType<typeof forgeries>)[]

describe('a replay id without the signature of the replay', () => {
  test.each(FORGERIES)('confirms nothing: %s', async (kind) => {
    const name = `confirmed with ${kind}`
    const { stage, id, run, sent } = await published(name)
    const other = await published(`other for ${name}`)
    const replayId = forgeries(sent.replayId, other.sent.replayId)[kind]
    stage.wire.say({ replayId, outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 0, expired: 0 })
    expect(stage.wire.released).toBe(1)
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'replaying' })
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'published' }])
    expect(await mismatchesOf(name)).toBe(1)
    // The real confirmation still counts.
    stage.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    expect(await mismatchesOf(name)).toBe(1)
  })

  test.each(FORGERIES)('makes a message another dead letter: %s', async (kind) => {
    const name = `returned with ${kind}`
    const { stage, id, run, sent } = await published(name)
    const other = await published(`other for ${name}`)
    const replayId = forgeries(sent.replayId, other.sent.replayId)[kind]
    stage.wire.back(withBody(ORIGINAL, { ...sent, replayId }))
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 1, failedAgain: 0 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'replaying', cycle: 1 })
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'published' }])
    expect(await mismatchesOf(name)).toBe(1)
  })
})

describe('the signature of a replay id', () => {
  test('is that of the first publish after the key is changed, so that the message is the same', async () => {
    const { stage, run, sent } = await published('rotated', { change: { force: true } })
    await pool.query('select redrive_catalog.rotate_replay_key()')
    await pool.query(
      `update redrive_catalog.replay_item set state = 'publishing', lease_until = now() - interval '1 second' where run_id = $1`,
      [run.id],
    )
    await stage.replayer.turn()
    expect(stage.wire.sent.map(({ replayId }) => replayId)).toEqual([sent.replayId, sent.replayId])
    stage.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    const next = await published('after rotation')
    expect(keyIdOf(next.sent.replayId)).toBeGreaterThan(keyIdOf(sent.replayId))
  })

  test('uses another key after 30 days, and the same one before', async () => {
    const { stage, sent } = await published('maintained')
    await stage.catalog.maintain()
    const next = await published('maintained again')
    expect(keyIdOf(next.sent.replayId)).toBe(keyIdOf(sent.replayId))
    await pool.query(
      `update redrive_catalog.replay_key set created_at = created_at - interval '30 days'`,
    )
    await stage.catalog.maintain()
    const later = await published('maintained later')
    expect(keyIdOf(later.sent.replayId)).toBeGreaterThan(keyIdOf(sent.replayId))
  })

  test('is needed to confirm a changed body that is not published yet', async () => {
    const edit = Buffer.from('{"order":"edited"}')
    const stage = await staged(pool, 'queued edit', 1, () => ({ delivery: { bytes: ORIGINAL } }))
    const ids = await stage.ids()
    const run = await stage.started({ selection: { ids }, change: { edit } })
    const [item] = await itemsOf(stage, run.id)
    stage.wire.say({ replayId: item?.replayId ?? '', outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 0, expired: 0 })
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'queued' }])
  })

  test('is compared with the run that was approved, not with a cancelled one of the same dead letter', async () => {
    const stage = await staged(pool, 'planned twice', 1, () => ({ delivery: { bytes: ORIGINAL } }))
    stage.wire.answer = () => 'silent'
    // The same number of earlier replays gives the same replay id. The order of the rows must not matter.
    const plans = [await stage.plan(), await stage.plan(), await stage.plan()] as const
    await stage.replays.cancel(plans[0].id, { by: 'ada' })
    await stage.replays.approve(plans[1].id, { hash: plans[1].hash, by: 'bob' })
    await stage.replayer.turn()
    await stage.replays.cancel(plans[2].id, { by: 'ada' })
    const replayIds = await Promise.all(
      plans.map(async ({ id }) => (await itemsOf(stage, id))[0]?.replayId),
    )
    expect(new Set(replayIds).size).toBe(1)
    stage.wire.say({ replayId: stage.wire.sent[0]?.replayId ?? '', outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    expect(await mismatchesOf('planned twice')).toBe(0)
  })

  test('is not added when an item of an earlier release is published again', async () => {
    const { stage, run, sent } = await published('published before', { change: { force: true } })
    await pool.query(
      `update redrive_catalog.replay_item set key_id = null, state = 'publishing',
        lease_until = now() - interval '1 second' where run_id = $1`,
      [run.id],
    )
    await stage.replayer.turn()
    expect(stage.wire.sent[1]?.replayId).toBe(sent.replayId.slice(0, 36))
  })

  test('is not expected from a replay that an earlier release published without one', async () => {
    const { stage, run, sent } = await published('unsigned')
    await pool.query('update redrive_catalog.replay_item set key_id = null where run_id = $1', [
      run.id,
    ])
    const replayId = sent.replayId.slice(0, 36)
    stage.wire.say({ replayId, outcome: 'handled', at: 0 })
    expect(await stage.replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
  })
})

const keyIdOf = (replayId: string) => Number(replayId.split('.')[1])

describe('a confirmation', () => {
  test.each([
    ['handled', 'resolved'],
    ['already_handled', 'resolved'],
    ['dropped', 'expired'],
  ] as const)('counts only in the source of its replay: %s', async (outcome, status) => {
    const { stage, id, run, sent } = await published(`orders ${outcome}`)
    const other = await staged(pool, `billing ${outcome}`, 0)
    const confirmation = { replayId: sent.replayId, outcome, at: 0 }
    other.wire.say(confirmation)
    expect(await other.replayer.confirm()).toEqual({ resolved: 0, expired: 0 })
    expect(other.wire.released).toBe(1)
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'replaying' })
    expect(await itemsOf(stage, run.id)).toMatchObject([
      { state: 'published', confirmedBy: undefined },
    ])
    expect(await stage.unsettledCount()).toBe(1)
    stage.wire.say(confirmation)
    expect(await stage.replayer.confirm()).toMatchObject({ [status]: 1 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status })
    // The outcome changes the status; the body stays until retention.
    expect(await bodyOf(stage, id)).toBe(ORIGINAL.toString())
  })

  test('of another source does not resolve a dead letter that failed again', async () => {
    const { stage, id, sent } = await published('orders failed again')
    const other = await staged(pool, 'billing failed again', 0)
    stage.wire.back(withBody(ORIGINAL, sent))
    await stage.catalog.ingest(stage.wire)
    other.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    await other.replayer.confirm()
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'open', cycle: 2 })
    expect(await stage.unsettledCount()).toBe(1)
  })

  test('counts by the source it is read from, when one worker serves both sources', async () => {
    const { stage, run, sent } = await published('orders shared')
    const other = await staged(pool, 'billing shared', 0)
    const sources = [{ source: stage.wire }, { source: other.wire }]
    const replayer = stage.replays.replayer({ sources })
    other.wire.say({ replayId: sent.replayId, outcome: 'dropped', at: 0 })
    stage.wire.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    expect(await replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    expect(await itemsOf(stage, run.id)).toMatchObject([{ state: 'resolved' }])
  })

  test('counts under the name that the catalog has for the source', async () => {
    const { stage, id, sent } = await published('orders renamed')
    const source = new Wire('another queue name')
    const replayer = stage.replays.replayer({ sources: [{ source, name: 'orders renamed' }] })
    source.say({ replayId: sent.replayId, outcome: 'handled', at: 0 })
    expect(await replayer.confirm()).toEqual({ resolved: 1, expired: 0 })
    expect(await stage.catalog.deadLetter(id)).toMatchObject({ status: 'resolved' })
  })
})
