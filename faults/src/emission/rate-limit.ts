import { setImmediate as nextTurn } from 'node:timers/promises'
import { createEmitter } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { recordingSink } from '@redrive/testing'
import { brokenIf, type Drill } from '../drill.ts'

const LIMIT = 1_000
/** One in five is a payment. They come as fast as they can: the limit is always slower. */
const EVENTS = 5_000
const AT_ONCE = 50

/** No payment is lost in a flood of junk, and the junk is dropped and counted. */
export const rateLimit: Drill = {
  name: 'rate-limit',
  story: '1,000 payments among 4,000 junk events at once, at a limit of 1,000 a second',
  isInSmoke: true,
  async play({ folder }) {
    const store = fileStore({ directory: folder })
    const sink = recordingSink()
    const begunAt = performance.now()
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
    const pending: ReturnType<typeof emitter.emit>[] = []
    let elapsedS = 0
    while (pending.length < EVENTS) {
      const step = types.slice(pending.length, pending.length + AT_ONCE)
      for (const type of step) pending.push(emitter.emit({ type, data: { amount: 1 } }))
      elapsedS = (performance.now() - begunAt) / 1_000
      await nextTurn()
    }
    // A second's worth is saved up, and one may be due in this moment.
    const most = LIMIT + LIMIT * elapsedS + 1
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
        `${limited} over the limit in ${elapsedS.toFixed(2)} s`,
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
        [sink.events.length > most, 'storm', `${sink.events.length} got through in ${elapsedS} s`],
      ),
    }
  },
}
