import { createEmitter } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { recordingSink } from '@redrive/testing'
import { lasting } from '../wait.ts'
import { brokenIf, type Drill } from '../drill.ts'

const LIMIT = 1_000
/** Of 5,000 events in a second one in five is a payment. */
const EVENTS = 5_000
const IN_MS = 1_000
const EVERY_MS = 10

/** No payment is lost in a flood of junk, and the junk is dropped and counted. */
export const rateLimit: Drill = {
  name: 'rate-limit',
  story: '1,000 payments among 4,000 junk events in a second, at a limit of 1,000 a second',
  async play({ folder }) {
    const store = fileStore({ directory: folder })
    const sink = recordingSink()
    const emitter = createEmitter({
      sinks: { sink },
      store,
      queue: { most: EVENTS, whenFull: 'store' },
      rateLimit: { perSecond: LIMIT },
      filter: { always: [/^payment\./] },
    })
    const types = Array.from({ length: EVENTS }, (_, index) =>
      index % 5 === 0 ? 'payment.made' : 'junk',
    )
    const perStep = (EVENTS * EVERY_MS) / IN_MS
    const pending: ReturnType<typeof emitter.emit>[] = []
    while (pending.length < EVENTS) {
      const step = types.slice(pending.length, pending.length + perStep)
      for (const type of step) pending.push(emitter.emit({ type, data: { amount: 1 } }))
      await lasting(EVERY_MS)
    }
    const kinds = (await Promise.all(pending)).map(({ sinks }) => sinks['sink']?.kind)
    const count = (type: string, kind: string) =>
      kinds.filter((one, index) => one === kind && types[index] === type).length
    const delivered = sink.events.filter(({ type }) => type === 'payment.made').length
    const { count: stored } = await store.stats()
    const lost = EVENTS / 5 - delivered - stored
    const { limited } = emitter.stats()
    const dropped = count('junk', 'dropped')
    await emitter.close()
    return {
      events: EVENTS,
      told: [
        `payments: ${delivered} delivered, ${stored} stored, ${lost} lost`,
        `junk: ${count('junk', 'delivered')} delivered, ${dropped} dropped`,
        `${limited} over the limit`,
      ],
      broken: brokenIf(
        [lost !== 0, 'lost', `${lost} payments`],
        [
          count('payment.made', 'stored') !== stored,
          'unexpected',
          'something else is in the store',
        ],
        [
          dropped === 0 || dropped + stored !== limited,
          'unexpected',
          `${dropped} dropped and ${stored} stored of ${limited}`,
        ],
        [sink.events.length > LIMIT * 2.5, 'storm', `${sink.events.length} got through`],
      ),
    }
  },
}
