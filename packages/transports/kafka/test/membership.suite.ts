import { describe, expect, it } from 'vitest'
import { decodeCommit } from '../src/consume/crash-evidence.ts'
import type { KafkaDelivery } from '../src/index.ts'
import { isFenced } from '../src/protocol/offsets.ts'
import { OFFSET_COMMIT, Process } from './process.ts'
import { Inbox, onRig, type Rig, SETTLE, type Started, textOf, until } from './rig.ts'

/** Request types of the protocol. */
const FIND_COORDINATOR = 10
const JOIN_GROUP = 11
const HEARTBEAT = 12
const SYNC_GROUP = 14

const PARTITIONS = 4
/** An id that no broker has. */
const NOBODY = 99

/** Counts the requests of a process and their answers. */
function watched() {
  const asked = new Map<number, number>()
  const answered = new Map<number, number>()
  const refusedCommits: Error[] = []
  let isCut = false
  const more = (counts: Map<number, number>, apiKey: number) =>
    counts.set(apiKey, (counts.get(apiKey) ?? 0) + 1)
  const process = new Process((apiKey, send, callback) => {
    more(asked, apiKey)
    // Its heartbeats do not arrive, but its commits do.
    if (isCut && (apiKey === HEARTBEAT || apiKey === JOIN_GROUP)) {
      return callback(new Error('cut'))
    }
    send((error, answer) => {
      more(answered, apiKey)
      if (apiKey === OFFSET_COMMIT && error !== null) refusedCommits.push(error)
      callback(error, answer)
    })
  })
  return {
    process,
    refusedCommits,
    answers: (apiKey: number) => answered.get(apiKey) ?? 0,
    cut: (value: boolean) => {
      isCut = value
    },
  }
}

/** Delays requests of that kind until they are released. */
function held(which: number) {
  let isOpen = false
  const waiting: (() => void)[] = []
  const answered: number[] = []
  const process = new Process((apiKey, send, callback) => {
    const go = () =>
      send((error, answer) => {
        answered.push(apiKey)
        callback(error, answer)
      })
    if (apiKey === which && !isOpen) waiting.push(go)
    else go()
  })
  return {
    process,
    waiting: () => waiting.length,
    answers: (apiKey: number) => answered.filter((one) => one === apiKey).length,
    release: () => {
      isOpen = true
      for (const go of waiting.splice(0)) go()
    },
  }
}

const partitionsIn = (deliveries: readonly KafkaDelivery[]) =>
  new Set(deliveries.map(({ raw }) => raw.partition))

export function sharingPartitions(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: PARTITIONS })

  /** Sends one record to each partition, with that text as prefix. */
  async function sendToEach(rig: Rig, text: string): Promise<void> {
    for (const { partition } of rig.topicPartitions())
      await rig.send({ partition, value: `${text} ${partition}` })
  }

  async function settleAll({ transport, inbox }: Started): Promise<readonly string[]> {
    const kinds: string[] = []
    for (const delivery of inbox.deliveries) {
      kinds.push((await transport.enact(delivery, SETTLE)).kind)
    }
    return kinds
  }

  describe.concurrent('sharing partitions', () => {
    it(
      'reports how many partitions of the topic each member has',
      on(async (rig) => {
        const events = rig.events()
        const assigned = () =>
          events.flatMap((event) => (event.type === 'assignment_changed' ? [event.assigned] : []))
        await rig.start()
        await until('the first has all', () => assigned().length === 1)
        expect(assigned()).toEqual([PARTITIONS])
        await rig.start()
        const half = PARTITIONS / 2
        await until(
          'both have a share',
          () =>
            assigned()
              .slice(-4)
              .filter((one) => one === half).length === 2,
        )
        expect(assigned().filter((one) => one > half)).toEqual([PARTITIONS])
      }),
    )

    it(
      'knows its lag: the records of its partitions that are not committed',
      on(async (rig) => {
        await sendToEach(rig, 'old')
        const started = await rig.start()
        await started.inbox.nth(PARTITIONS)
        await until('all partitions are read', () => started.transport.lag() === PARTITIONS)
        await settleAll(started)
        expect(started.transport.lag()).toBe(0)
      }),
    )

    it(
      'ends receive() when the group is joined',
      on(async (rig) => {
        const events = rig.events()
        const transport = rig.transport()
        await transport.open()
        await transport.receive(new Inbox())
        expect(events.map(({ type }) => type)).toContain('assignment_changed')
      }),
    )

    it(
      'reports after 10 s that the group is not joined, and when it is',
      on(async (rig) => {
        const events = rig.events()
        const slow = held(JOIN_GROUP)
        const transport = rig.transport({}, slow.process)
        await transport.open()
        await transport.receive(new Inbox())
        const [lost] = events
        expect(lost).toMatchObject({ type: 'connection_lost' })
        expect(String(lost?.type === 'connection_lost' && lost.error)).toContain(
          `has not joined the group "${rig.group}" after 10 s`,
        )
        slow.release()
        await until('it has joined', () => events.some(({ type }) => type === 'assignment_changed'))
        expect(events.map(({ type }) => type)).toContain('connection_restored')
      }),
    )

    it(
      'finishes deliveries in flight before a partition moves, and does not deliver them again',
      on(async (rig) => {
        const first = await rig.start({ drainTimeout: '20s', sessionTimeout: '40s' })
        await sendToEach(rig, 'old')
        await first.inbox.nth(PARTITIONS)
        const { process, answers } = watched()
        const second = await rig.start({ process, drainTimeout: '20s', sessionTimeout: '40s' })
        // It is in the group without partitions: the first member must release some.
        await until('the second is in the group', () => answers(SYNC_GROUP) >= 1)
        expect(second.inbox.deliveries).toEqual([])
        expect(await settleAll(first)).toEqual(Array<string>(PARTITIONS).fill('done'))
        await until('the second has its share', () => answers(SYNC_GROUP) >= 2)
        await sendToEach(rig, 'new')
        const all = () => [...first.inbox.bodies, ...second.inbox.bodies]
        await until('all', () => all().length >= 2 * PARTITIONS)
        expect(all().toSorted()).toEqual(
          ['new', 'old'].flatMap((text) =>
            rig.topicPartitions().map(({ partition }) => `${text} ${partition}`),
          ),
        )
        expect(second.inbox.deliveries.length).toBeGreaterThan(0)
        expect([...first.inbox.lostOnes, ...second.inbox.lostOnes]).toEqual([])
      }),
    )

    it(
      'does not start a partition that is revoked before its start',
      on(async (rig) => {
        const slow = held(OFFSET_COMMIT)
        const first = await rig.start({ process: slow.process })
        await until('the first is about to begin', () => slow.waiting() === 1)
        const { process, answers } = watched()
        const second = await rig.start({ process })
        await until('the second is in the group', () => answers(SYNC_GROUP) >= 1)
        await until('the first must release partitions', () => slow.answers(SYNC_GROUP) >= 2)
        slow.release()
        await until('the second has its share', () => answers(SYNC_GROUP) >= 2)
        await sendToEach(rig, 'record')
        const all = () => [...first.inbox.bodies, ...second.inbox.bodies]
        await until('all', () => all().length >= PARTITIONS)
        await sendToEach(rig, 'then')
        await until('all of the second time', () =>
          rig.topicPartitions().every(({ partition }) => all().includes(`then ${partition}`)),
        )
        expect(all()).toHaveLength(2 * PARTITIONS)
      }),
    )

    it(
      'commits finished records before a partition moves, even if the broker first rejects the commit',
      on(async (rig) => {
        let isRefusing = false
        let refused = 0
        const process = new Process((apiKey, send, callback) => {
          if (apiKey === OFFSET_COMMIT && isRefusing && refused < 3) {
            refused += 1
            return callback(new Error('not now'))
          }
          send(callback)
        })
        const times = { drainTimeout: '10s', sessionTimeout: '20s' } as const
        const first = await rig.start({ ...times, process })
        await sendToEach(rig, 'record')
        await first.inbox.nth(PARTITIONS)
        const { process: other, answers } = watched()
        const second = await rig.start({ ...times, process: other })
        await until('the second is in the group', () => answers(SYNC_GROUP) >= 1)
        isRefusing = true
        expect(await settleAll(first)).toEqual(Array<string>(PARTITIONS).fill('done'))
        await until('the second has its share', () => answers(SYNC_GROUP) >= 2)
        await sendToEach(rig, 'then')
        const all = () => [...first.inbox.bodies, ...second.inbox.bodies]
        await until('all of the second time', () =>
          rig.topicPartitions().every(({ partition }) => all().includes(`then ${partition}`)),
        )
        expect(all()).toHaveLength(2 * PARTITIONS)
        expect(refused).toBe(3)
      }),
    )

    it(
      'survives a coordinator that is not in the list of brokers',
      on(async (rig) => {
        let wrong = 0
        const process = new Process((apiKey, send, callback) => {
          if (apiKey !== FIND_COORDINATOR || wrong === 3) return send()
          wrong += 1
          send((error, answer) => {
            for (const found of (answer as { coordinators: { nodeId: number }[] }).coordinators) {
              found.nodeId = NOBODY
            }
            callback(error, answer)
          })
        })
        const { inbox } = await rig.start({ process })
        await sendToEach(rig, 'record')
        await inbox.nth(PARTITIONS)
        expect(wrong).toBe(3)
      }),
    )

    it(
      'does not interrupt a kept partition when others join, and loses a revoked one after the drain timeout',
      on(async (rig) => {
        const first = await rig.start({ drainTimeout: '500ms' })
        await sendToEach(rig, 'old')
        await first.inbox.nth(PARTITIONS)
        const second = await rig.start({ drainTimeout: '500ms' })
        await until('the second has a share', () => second.inbox.deliveries.length > 0)
        const gone = partitionsIn(first.inbox.lostOnes)
        expect(gone.size).toBeGreaterThan(0)
        expect(gone.size).toBeLessThan(PARTITIONS)
        const third = await rig.start({ drainTimeout: '500ms' })
        await until('the third has a share, too', () => third.inbox.deliveries.length > 0)
        for (const { transport, inbox } of [first, second, third]) {
          for (const delivery of inbox.deliveries) {
            const { kind } = await transport.enact(delivery, SETTLE)
            expect(kind).toBe(inbox.lostOnes.includes(delivery) ? 'lost' : 'done')
          }
        }
        // Exactly one consumer finishes each record, once.
        await until('all committed', async () => {
          await Promise.all([first, second, third].map(({ transport }) => transport.committed()))
          return (await rig.committed()).every(({ offset }) => offset === 1)
        })
        const kept = [first, second, third].flatMap(({ inbox }) =>
          inbox.deliveries.filter((delivery) => !inbox.lostOnes.includes(delivery)),
        )
        expect(kept).toHaveLength(PARTITIONS)
        expect(partitionsIn(kept).size).toBe(PARTITIONS)
      }),
    )

    /** Cuts a consumer off from the brokers. Returns it with a second one, which has all partitions. */
    async function takenOver(rig: Rig) {
      const { process, refusedCommits, cut } = watched()
      const first = await rig.start({ process, sessionTimeout: '6s', drainTimeout: '500ms' })
      await sendToEach(rig, 'record')
      await first.inbox.nth(PARTITIONS)
      cut(true)
      const second = await rig.start({ sessionTimeout: '6s' })
      await second.inbox.nth(PARTITIONS)
      return { first, second, refusedCommits, cut }
    }

    it(
      'commits nothing after the session has expired, and reports deliveries as lost',
      on(async (rig) => {
        const { first, refusedCommits, cut } = await takenOver(rig)
        // The first consumer does not know it yet and finishes two; the broker rejects the commit.
        const [one, two, three, four] = first.inbox.deliveries as [
          KafkaDelivery,
          KafkaDelivery,
          KafkaDelivery,
          KafkaDelivery,
        ]
        for (const delivery of [one, two]) await first.transport.enact(delivery, SETTLE)
        await first.transport.committed()
        await until('a commit was refused', () => refusedCommits.length > 0)
        expect(refusedCommits.every(isFenced)).toBe(true)
        expect((await rig.committed()).map(({ offset }) => offset ?? 0)).toEqual([0, 0, 0, 0])
        cut(false)
        await until('it learns that they are gone', () => first.inbox.lostOnes.length === 2)
        for (const delivery of [three, four]) {
          expect(first.inbox.lostOnes).toContain(delivery)
          expect(await first.transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
        }
      }),
    )

    it(
      'does not reuse the progress of a partition that other members may have owned in between',
      on(async (rig) => {
        const { first, second, cut } = await takenOver(rig)
        expect(await settleAll(second)).toEqual(Array<string>(PARTITIONS).fill('done'))
        await second.transport.close()
        cut(false)
        await until('all are lost', () => first.inbox.lostOnes.length === PARTITIONS)
        await sendToEach(rig, 'later')
        await first.inbox.nth(2 * PARTITIONS)
        expect(first.inbox.bodies.slice(PARTITIONS).every((body) => body.startsWith('later'))).toBe(
          true,
        )
      }),
    )
  })

  describe.concurrent('committing', () => {
    it(
      'never passes the first unfinished record, and a restart delivers only unfinished records',
      on(async (rig) => {
        const { transport, inbox } = await rig.start({ limit: 1_000 })
        const count = 40
        for (let index = 0; index < count; index++) {
          await rig.send({ value: `${index}`, partition: index % PARTITIONS })
        }
        await inbox.nth(count)
        // In a mixed order: 17 and 40 have no common factor.
        const order = Array.from(
          { length: count },
          (_, index) => inbox.deliveries[(index * 17) % count],
        )
        const unfinished = new Set(inbox.deliveries)
        for (const delivery of (order as KafkaDelivery[]).slice(0, 29)) {
          await transport.enact(delivery, SETTLE)
          unfinished.delete(delivery)
          await transport.committed()
          const committed = await rig.committed()
          for (const { partition } of rig.topicPartitions()) {
            const open = [...unfinished].filter(({ raw }) => raw.partition === partition)
            const offset = Math.min(count / PARTITIONS, ...open.map(({ raw }) => raw.offset))
            expect(committed[partition]?.offset ?? 0).toBe(offset)
          }
        }
        // The metadata contains exactly the finished records above it.
        for (const [partition, { offset = 0, metadata }] of (await rig.committed()).entries()) {
          const { progress: told } = decodeCommit(offset, metadata)
          for (const delivery of inbox.deliveries) {
            if (delivery.raw.partition !== partition) continue
            expect(told.has(delivery.raw.offset)).toBe(!unfinished.has(delivery))
          }
        }
        await transport.close()
        const next = await rig.start({ limit: 1_000 })
        await next.inbox.nth(unfinished.size)
        const left = [...unfinished].map(({ raw }) => textOf(raw)).toSorted()
        expect([...next.inbox.bodies].toSorted()).toEqual(left)
        for (const delivery of next.inbox.deliveries) await next.transport.enact(delivery, SETTLE)
        await next.transport.committed()
        expect((await rig.committed()).map(({ offset }) => offset)).toEqual([10, 10, 10, 10])
      }),
    )

    it(
      'ignores metadata that another client committed',
      on(async (rig) => {
        await sendToEach(rig, 'record')
        for (const { partition } of rig.topicPartitions()) {
          await rig.commit(0, ['hello', '1.////////', '1.Af__________8_', ''][partition], partition)
        }
        const { inbox } = await rig.start()
        await inbox.nth(1)
        await rig.send({ value: 'last', partition: 3 })
        await until('the last', () => inbox.bodies.includes('last'))
        expect(inbox.bodies).toContain('record 3')
      }),
    )
  })
}
