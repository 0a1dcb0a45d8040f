import { RedriveError } from '@redrive/core'
import type { DrainedDeadLetter, ReplayMessage } from '@redrive/runtime'
import { describe, expect, test } from 'vitest'
import { migrated } from './rig.ts'
import { failedAgain, staged } from './replay-stage.ts'

const pool = await migrated('redrive_catalog_replay_unproven')

/** Dead letters that no Redrive consumer wrote, and consumers that confirm nothing. */
async function plain(name: string, count: number) {
  const stage = await staged(pool, name, count, () => ({ reason: 'broker_rejected' }))
  stage.wire.answer = () => 'silent'
  return stage
}

/** Makes the published items overdue. */
const passTime = () =>
  pool.query(
    `update redrive_catalog.replay_item set published_at = published_at - interval '10 minutes' where state = 'published'`,
  )

/** The same message in the dead-letter queue again, without any header of Redrive. */
function withoutHeaders(message: ReplayMessage | undefined): DrainedDeadLetter {
  if (message === undefined) throw new Error('Nothing was published.')
  const again = failedAgain(message.deadLetter, message.replayId)
  const { cycle } = again.delivery
  return {
    ...again,
    delivery: { ...again.delivery, replayId: undefined, cycle: { ...cycle, number: 1 } },
  }
}

describe('the proof of a run', () => {
  test('is none if the consumers never confirmed and no Redrive consumer wrote the dead letters', async () => {
    const stage = await plain('p1', 3)
    expect((await stage.plan()).options).toMatchObject({
      proof: 'returns',
      proofReason: 'foreign_dead_letters',
      canary: [10],
    })
  })

  test('is a confirmation if a Redrive consumer wrote one of the dead letters', async () => {
    const stage = await staged(pool, 'p2', 3, (at) =>
      at === 0 ? {} : { reason: 'broker_expired' },
    )
    expect((await stage.plan()).options).toMatchObject({
      proof: 'confirmations',
      proofReason: 'redrive_dead_letters',
      canary: [1, 5, 50],
    })
  })

  test('is a confirmation once the consumers have confirmed a replay', async () => {
    const stage = await plain('p3', 2)
    const [first = '', second = ''] = await stage.ids()
    stage.wire.answer = () => 'handled'
    const { id } = await stage.started({ selection: { ids: [first] } })
    expect(await stage.ended(id)).toMatchObject({ state: 'done', counts: { resolved: 1 } })
    expect((await stage.plan({ selection: { ids: [second] } })).options).toMatchObject({
      proof: 'confirmations',
      proofReason: 'confirmed_before',
    })
  })

  test('is the one of the request or of the options', async () => {
    const stage = await plain('p4', 1)
    expect((await stage.plan({ proof: 'confirmations' })).options).toMatchObject({
      proof: 'confirmations',
      proofReason: 'requested',
    })
    const options = { proofs: { p5: 'returns' } } as const
    const configured = await staged(pool, 'p5', 1, () => ({}), options)
    expect((await configured.plan()).options).toMatchObject({
      proof: 'returns',
      proofReason: 'configured',
    })
  })
})

describe('a replay to consumers that confirm nothing', () => {
  test('continues after the canary without a person, and ends with messages that did not return', async () => {
    const stage = await plain('u1', 25)
    const { id } = await stage.started()
    await stage.replayer.turn()
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 10, queued: 15 } })
    expect(await stage.replayer.turn()).toBeUndefined()
    await passTime()
    await stage.replayer.sweep()
    expect(await stage.replays.run(id)).toMatchObject({ counts: { not_returned: 10, queued: 15 } })
    expect(await stage.replayer.turn()).toMatchObject({ published: 15 })
    await passTime()
    await stage.replayer.sweep()
    expect(await stage.replays.run(id)).toMatchObject({
      state: 'done',
      counts: { not_returned: 25 },
    })
    expect(await stage.statuses()).toEqual({ not_returned: 25 })
    expect(await stage.unsettledCount()).toBe(0)
    const [item] = await stage.replays.items({ run: id, limit: 1 })
    expect(item).toMatchObject({ state: 'not_returned', reason: 'not returned within 5 min' })
  })

  test('pauses when messages of the canary return, and names the limit', async () => {
    const stage = await plain('u2', 25)
    const { id } = await stage.started()
    await stage.replayer.turn()
    stage.wire.back(...stage.wire.sent.slice(0, 2).map(withoutHeaders))
    await stage.catalog.ingest(stage.wire)
    await stage.replayer.turn()
    const run = await stage.replays.run(id)
    expect(run).toMatchObject({ state: 'paused', counts: { failed_again: 2, published: 8 } })
    expect(run?.pauseReason).toBe(
      '2 of the latest 10 messages failed again. The limit is 10 % (--max-failure-ratio).',
    )
  })

  test('finds a returned message by its message id and body, and keeps one dead letter', async () => {
    const stage = await plain('u3', 2)
    const { id } = await stage.started()
    await stage.replayer.turn()
    const [first, second] = stage.wire.sent
    if (second === undefined) throw new Error('Nothing was published.')
    // The broker delivers the original of the second once more. It is not a returned replay.
    stage.wire.back(withoutHeaders(first), second.deadLetter)
    await stage.catalog.ingest(stage.wire)
    expect(await stage.replays.run(id)).toMatchObject({ counts: { failed_again: 1, published: 1 } })
    expect(await stage.statuses()).toEqual({ open: 1, replaying: 1 })
    const open = (await stage.catalog.deadLetters({ groups: [stage.group] })).deadLetters[0]
    expect(open).toMatchObject({ cycle: 2, messageId: first?.deadLetter.delivery.id })
  })

  test('keeps headers and key of a message that returns without its replay id', async () => {
    const stage = await plain('u3 kept', 1)
    const [id = ''] = await stage.ids()
    await stage.started()
    await stage.replayer.turn()
    const [sent] = stage.wire.sent
    const before = (await stage.catalog.deadLetter(id))?.drained.delivery
    // Any client that knows the message can write such a message, with other headers.
    const again = withoutHeaders(sent)
    const delivery = { ...again.delivery, key: 'forged', headers: { tenant: 'forged' } }
    stage.wire.back({ ...again, delivery })
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ added: 0, failedAgain: 1 })
    const found = await stage.catalog.deadLetter(id)
    expect(found).toMatchObject({ status: 'open', cycle: 2, key: before?.key })
    expect(found?.headers).toEqual(before?.headers)
    expect(found?.drained.delivery).toMatchObject({
      key: before?.key,
      headers: before?.headers,
      bytes: before?.bytes,
    })
    // The next replay publishes the original.
    stage.wire.answer = () => 'handled'
    await stage.started({ overrides: ['failed_recently'] })
    await stage.replayer.turn()
    expect(stage.wire.sent[1]?.deadLetter.delivery).toMatchObject({ headers: before?.headers })
  })

  test.each([
    ['with the headers of Redrive', (again: DrainedDeadLetter) => again],
    [
      'with a replay id that only its headers contain',
      (again: DrainedDeadLetter) => ({
        ...again,
        delivery: {
          ...again.delivery,
          replayId: undefined,
          headers: { 'redrive-replay-id': again.delivery.replayId },
        },
      }),
    ],
    [
      'without any header of Redrive',
      (again: DrainedDeadLetter) => ({
        ...again,
        delivery: { ...again.delivery, replayId: undefined },
      }),
    ],
  ])('counts a message that returns %s and is set aside as failed again', async (how, changed) => {
    const stage = await plain(`aside ${how}`, 2)
    const { id } = await stage.started()
    await stage.replayer.turn()
    const [first] = stage.wire.sent
    if (first === undefined) throw new Error('Nothing was published.')
    const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
    const again = { ...changed(failedAgain(first.deadLetter, first.replayId)), problem }
    for (let times = 0; times < 2; times++) {
      stage.wire.back(again)
      await stage.catalog.ingest(stage.wire)
    }
    await passTime()
    await stage.replayer.sweep()
    const run = await stage.replays.run(id)
    expect(run).toMatchObject({ state: 'done', counts: { failed_again: 1, not_returned: 1 } })
    expect(await stage.statuses()).toEqual({ open: 1, not_returned: 1 })
    expect(await stage.counts()).toEqual({ open: 1, replaying: 0, undecided: 0 })
    const [open] = (await stage.catalog.deadLetters({ groups: [stage.group] })).deadLetters
    const { messages } = await stage.catalog.setAside.list({ sources: [stage.wire.source] })
    expect(messages.map(({ explanation }) => explanation)).toEqual([
      `The headers cannot be read. It is a replay of the dead letter ${open?.id}, which is open again. Discard one of the two.`,
    ])
    // It can be replayed again.
    stage.wire.answer = () => 'handled'
    expect((await stage.ended((await stage.started()).id)).counts.resolved).toBe(1)
  })

  test.each([1.5, 1e300, Number.NaN, 4_000_000_000_000.5])(
    'ingests all messages although a set-aside one failed at %s',
    async (at) => {
      const stage = await plain(`aside at ${at}`, 2)
      await stage.started()
      await stage.replayer.turn()
      const [first, second] = stage.wire.sent
      if (first === undefined || second === undefined) throw new Error('Nothing was published.')
      const again = withoutHeaders(first)
      const { cycle } = again.delivery
      const history = cycle.history.map((record) => ({ ...record, at }))
      const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
      const hostile = {
        ...again,
        delivery: { ...again.delivery, cycle: { ...cycle, history } },
        problem,
      }
      stage.wire.back(hostile, withoutHeaders(second))
      expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ failedAgain: 1, setAside: 1 })
      expect(await stage.statuses()).toEqual({ open: 2 })
    },
  )

  test('names the status of a dead letter that stays as it is when its replay is set aside', async () => {
    const stage = await plain('aside expired', 1)
    await stage.started()
    await stage.replayer.turn()
    const [first] = stage.wire.sent
    if (first === undefined) throw new Error('Nothing was published.')
    stage.wire.say({ replayId: first.replayId, outcome: 'dropped', at: 0 })
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ expired: 1 })
    const [id] = await stage.ids()
    const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
    stage.wire.back({ ...failedAgain(first.deadLetter, first.replayId), problem })
    await stage.catalog.ingest(stage.wire)
    expect(await stage.statuses()).toEqual({ expired: 1 })
    const { messages } = await stage.catalog.setAside.list({ sources: [stage.wire.source] })
    expect(messages.map(({ explanation }) => explanation)).toEqual([
      `The headers cannot be read. It is a replay of the dead letter ${id}, which has the status "expired".`,
    ])
  })

  test.each([
    ['is open: it is put back once', 'open', { total: 2, done: 2 }, 1],
    ['is discarded: the set-aside message is put back', 'discarded', { total: 1, done: 1 }, 1],
    ['was rejected: both stay', 'rejected', { total: 2, done: 0 }, 0],
  ] as const)('is in the catalog twice if its dead letter %s', async (_, status, counts, times) => {
    const stage = await plain(`aside back ${status}`, 1)
    await stage.started()
    await stage.replayer.turn()
    const [first] = stage.wire.sent
    if (first === undefined) throw new Error('Nothing was published.')
    const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
    stage.wire.back({ ...failedAgain(first.deadLetter, first.replayId), problem })
    await stage.catalog.ingest(stage.wire)
    expect(await stage.statuses()).toEqual({ open: 1 })
    if (status === 'discarded') {
      await stage.catalog.discard({ ids: await stage.ids() }, { by: 'ada' })
    }
    const returned: DrainedDeadLetter[] = []
    const source = Object.assign(stage.wire, {
      putBack: async (letters: readonly DrainedDeadLetter[]) => {
        if (status === 'rejected') throw new RedriveError('REFUSED', 'too large')
        returned.push(...letters)
      },
    })
    const { refused, ...result } = await stage.catalog.putBack(source)
    expect(result).toMatchObject(counts)
    expect(refused).toHaveLength(status === 'rejected' ? 2 : 0)
    expect(returned.map(({ delivery }) => delivery.id)).toEqual(
      Array.from({ length: times }, () => first.deadLetter.delivery.id),
    )
    const { messages } = await stage.catalog.setAside.list({ sources: [stage.wire.source] })
    expect(messages).toHaveLength(status === 'rejected' ? 1 : 0)
  })

  test.each([
    ['its body was edited later', {}, { edit: Buffer.from('{"n":2}') }],
    ['it was published with a new key', { change: { force: true } }, undefined],
  ] as const)('is put back next to its dead letter if %s', async (name, first, later) => {
    const stage = await plain(`aside ${name}`, 1)
    const ids = await stage.ids()
    await stage.started({ selection: { ids }, ...first })
    await stage.replayer.turn()
    const [sent] = stage.wire.sent
    if (sent === undefined) throw new Error('Nothing was published.')
    const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
    stage.wire.back({ ...failedAgain(sent.deadLetter, sent.replayId), problem })
    await stage.catalog.ingest(stage.wire)
    if (later !== undefined) {
      await stage.started({ selection: { ids }, change: later })
      await stage.replayer.turn()
      const edited = stage.wire.sent.at(-1)
      if (edited === undefined) throw new Error('Nothing was published.')
      stage.wire.back(failedAgain(edited.deadLetter, edited.replayId))
      await stage.catalog.ingest(stage.wire)
    }
    const bodies: string[] = []
    const source = Object.assign(stage.wire, {
      putBack: async (letters: readonly DrainedDeadLetter[]) => {
        for (const { delivery } of letters)
          bodies.push(`${delivery.key} ${Buffer.from(delivery.bytes).toString()}`)
      },
    })
    expect(await stage.catalog.putBack(source)).toMatchObject({ total: 2, done: 2, refused: [] })
    expect(new Set(bodies).size).toBe(2)
  })

  test('does not count a set-aside message with another body as failed again', async () => {
    const stage = await plain('aside other', 1)
    const { id } = await stage.started()
    await stage.replayer.turn()
    const [first] = stage.wire.sent
    if (first === undefined) throw new Error('Nothing was published.')
    const other = failedAgain(first.deadLetter, first.replayId)
    const problem = { code: 'unreadable', message: 'The headers cannot be read.' } as const
    const delivery = { ...other.delivery, bytes: Buffer.from('{}') }
    stage.wire.back({ ...other, delivery, problem })
    expect(await stage.catalog.ingest(stage.wire)).toMatchObject({ setAside: 1 })
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 1 } })
  })

  test('does not take a message with another body for the replay', async () => {
    const stage = await plain('u4', 1)
    const { id } = await stage.started()
    await stage.replayer.turn()
    const other = withoutHeaders(stage.wire.sent[0])
    stage.wire.back({ ...other, delivery: { ...other.delivery, bytes: Buffer.from('{}') } })
    await stage.catalog.ingest(stage.wire)
    expect(await stage.replays.run(id)).toMatchObject({ counts: { published: 1 } })
    expect(await stage.statuses()).toEqual({ open: 1, replaying: 1 })
  })

  test.each([
    ['returns', 'open'],
    ['is confirmed', 'resolved'],
    ['is reopened by a user', 'open'],
    ['is resolved by a user', 'resolved'],
  ])('has another outcome when it later %s', async (what, status) => {
    const stage = await plain(`late ${what}`, 1)
    const { id } = await stage.started()
    await stage.replayer.turn()
    await passTime()
    await stage.replayer.sweep()
    expect(await stage.statuses()).toEqual({ not_returned: 1 })
    const [message] = stage.wire.sent
    const ids = await stage.ids()
    const act = {
      returns: () => stage.wire.back(withoutHeaders(message)),
      'is confirmed': () =>
        stage.wire.say({ replayId: message?.replayId ?? '', outcome: 'handled', at: 0 }),
      'is reopened by a user': () => stage.replays.setOutcome(ids, { as: 'open', by: 'ada' }),
      'is resolved by a user': () => stage.replays.setOutcome(ids, { as: 'resolved', by: 'ada' }),
    }[what]
    await act?.()
    await stage.catalog.ingest(stage.wire)
    await stage.replayer.confirm()
    expect(await stage.statuses()).toEqual({ [status]: 1 })
    expect(await stage.unsettledCount()).toBe(status === 'open' ? 1 : 0)
    expect((await stage.replays.run(id))?.counts.not_returned).toBe(0)
  })
})
