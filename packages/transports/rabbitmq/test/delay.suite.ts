import { describe, expect, it } from 'vitest'
import { delayQueue, topologyOf } from '../src/index.ts'
import { Rig, failedCycle, onRig, retryIn, until } from './rig.ts'
import { ask, type Management } from './management.ts'

/** While Erlang corrects its clock, a second of the broker is up to 1 % shorter. */
const BROKER_CLOCK = 0.99

export function delays(url: string, management: Management): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('delays', () => {
    it(
      'do not block a short delay behind a long one, and none ends early',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        for (let number = 0; number < 6; number++) await rig.send(String(number))
        await inbox.nth(6)
        const delayMs = (index: number) => (index % 2 === 0 ? 5_000 : 500)
        const askedAt = new Map<string, number>()
        for (const [index, delivery] of inbox.deliveries.slice(0, 6).entries()) {
          askedAt.set(delivery.id, performance.now())
          await transport.enact(delivery, retryIn(delayMs(index)))
        }
        await inbox.nth(12)
        const waits = inbox.deliveries.slice(6).map(({ id }, index) => ({
          isShort: Number(inbox.bodies[6 + index]) % 2 === 1,
          ms: (inbox.arrivedAt[6 + index] ?? 0) - (askedAt.get(id) ?? 0),
        }))
        expect(waits.map(({ isShort }) => isShort)).toEqual([true, true, true, false, false, false])
        for (const { isShort, ms } of waits) {
          expect(ms).toBeGreaterThanOrEqual((isShort ? 500 : 5_000) * BROKER_CLOCK)
          expect(ms).toBeLessThan(isShort ? 4_000 : 15_000)
        }
      }),
    )

    it(
      'do not block the retries of one source when another source was deleted',
      on(async (rig) => {
        // The broker moves 32 expired messages at a time and waits until the target has stored them.
        const waiting = 50
        const gone = await Rig.open(url)
        const { transport: goneTransport, inbox: goneInbox } = await gone.start()
        const { transport, inbox } = await rig.start()
        for (let number = 0; number < waiting; number++) await gone.send(String(number))
        await rig.send('still here')
        await goneInbox.nth(waiting)
        await Promise.all(
          goneInbox.deliveries.map(async (delivery) =>
            goneTransport.enact(delivery, retryIn(1_000)),
          ),
        )
        await goneTransport.close()
        await gone.deleteQueue(gone.queue)
        await until('all of them expired', async () => {
          return (await gone.count(delayQueue(gone.queue, 1_000))) === 0
        })
        for (let count = 1; count <= 2; count++) {
          const startedAt = performance.now()
          await transport.enact(await inbox.nth(count), retryIn(1_000, failedCycle(count)))
          await inbox.nth(count + 1)
          expect(performance.now() - startedAt).toBeLessThan(5_000)
        }
        await gone.clear()
      }),
    )

    it(
      'use queues as topologyOf lists them, without an expiry',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body')
        await transport.enact(await inbox.nth(1), retryIn(250))
        await inbox.nth(2)
        const name = delayQueue(rig.queue, 250)
        const spec = topologyOf(rig.queue, 'quorum').later.find((one) => one.name === name)
        const path = `/queues/%2F/${encodeURIComponent(name)}`
        const found = await ask<Record<string, unknown>>(management, path)
        expect(found).toMatchObject({ durable: true, auto_delete: false, exclusive: false })
        expect(found['arguments']).toEqual(spec?.arguments)
        expect(found['arguments']).not.toHaveProperty('x-expires')
      }),
    )

    it(
      'declare a deleted delay queue again for the next retry',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const name = delayQueue(rig.queue, 250)
        await rig.send('body')
        await transport.enact(await inbox.nth(1), retryIn(250))
        const second = await inbox.nth(2)
        await rig.deleteQueue(name)
        const enactment = await transport.enact(second, retryIn(250))
        expect(enactment).toMatchObject({ kind: 'refused', error: { code: 'UNROUTABLE' } })
        expect(String((enactment as { error: unknown }).error)).toContain(name)
        expect(await transport.enact(second, retryIn(250))).toMatchObject({ kind: 'done' })
        expect((await inbox.nth(3)).id).toBe(second.id)
        expect(inbox.deliveries).toHaveLength(3)
      }),
    )

    it(
      'send a retry without a delay directly to the source',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body')
        await transport.enact(await inbox.nth(1), retryIn(0))
        const second = await inbox.nth(2)
        expect(second.raw.properties.headers).not.toHaveProperty('x-death')
        expect(second.cycle.attempts).toBe(1)
      }),
    )
  })
}
