import { setImmediate as nextTurn } from 'node:timers/promises'
import { createEmitter } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { recordingSink } from '@redrive/testing'
import { brokenIf } from '../evidence/evidence.ts'
import type { Scenario } from '../harness/scenario.ts'

const LIMIT = 1_000
/**
 * One in five events is a payment. They are emitted as fast as possible, so the limit is always
 * slower.
 */
const EVENTS = 5_000
const AT_ONCE = 50

/** No payment is lost in a flood of junk events. Junk is dropped and counted. */
export const rateLimit: Scenario = {
  name: 'rate-limit',
  story: '1,000 payments among 4,000 junk events in one burst, at a limit of 1,000 per second',
  isInSmoke: true,
  async play({ folder }) {
    const store = fileStore({ directory: folder })
    const sink = recordingSink()
    const begunAt = performance.now()
    const emitter = createEmitter({
      sinks: { sink },
      store,
      queue: { maxEvents: EVENTS, onFull: 'store' },
      rateLimit: { perSecond: LIMIT },
      filter: { keep: [/^payment\./] },
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
    // One second's worth is saved up, and one more event may be due now.
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
      figures: [
        `payments: ${delivered} delivered, ${stored} stored, ${lost} lost`,
        `junk: ${count('junk', 'delivered')} delivered, ${dropped} dropped`,
        `${limited} over the limit in ${elapsedS.toFixed(2)} s`,
      ],
      broken: brokenIf(
        [lost !== 0, 'lost', `${lost} payments`],
        [
          count('payment.made', 'stored') !== stored,
          'unexpected',
          'the store has an event that is not a payment',
        ],
        [
          dropped === 0 || dropped + stored !== limited,
          'unexpected',
          `${dropped} dropped and ${stored} stored of ${limited}`,
        ],
        [
          sink.events.length > most,
          'storm',
          `${sink.events.length} were delivered in ${elapsedS} s`,
        ],
      ),
    }
  },
}
