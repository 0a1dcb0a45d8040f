import { describe, expect, it } from 'vitest'
import { BrokerClock } from '../src/consume/broker-clock.ts'
import { CrashEvidence } from '../src/consume/crash-evidence.ts'
import { Dispatcher } from '../src/consume/dispatcher.ts'
import type { KafkaDelivery, KafkaRecord } from '../src/delivery.ts'
import { Partition } from '../src/consume/partition.ts'
import { Progress } from '../src/consume/progress.ts'

const NOW = 1_000_000

const record = (offset: number, key: string | null = null, timestamp = NOW): KafkaRecord => ({
  topic: 'orders',
  partition: 0,
  offset,
  timestamp,
  key: key === null ? null : Buffer.from(key),
  value: Buffer.from(`body ${offset}`),
  headers: [[Buffer.from('name'), Buffer.from('value')]],
})

function partition({
  isOrdered = false,
  tierMs = 0,
  position = 0,
  progress = new Progress(position),
} = {}) {
  let taken = 0
  const made = new Partition({
    topicPartition: { topic: 'orders', partition: 0 },
    tierMs,
    progress,
    deaths: new CrashEvidence(),
    position,
    isOrdered,
    onTaken: () => {
      taken += 1
    },
    onOutOfRange: () => Promise.resolve(),
  })
  return { made, taken: () => taken }
}

/** Returns all records that can be delivered now. */
function handedOut(made: Partition, now = NOW): KafkaRecord[] {
  const all: KafkaRecord[] = []
  for (let next = made.next(now); typeof next === 'object'; next = made.next(now)) all.push(next)
  return all
}

const offsetsOf = (records: readonly KafkaRecord[]) => records.map(({ offset }) => offset)

describe('a partition', () => {
  it('delivers each record once, in order', () => {
    const { made, taken } = partition()
    made.take([record(0), record(1)], 2, 3)
    made.take([record(2)], 3, 3)
    expect(taken()).toBe(2)
    expect(made.isAtEnd).toBe(false)
    expect(offsetsOf(handedOut(made))).toEqual([0, 1, 2])
    expect(made.next(NOW)).toBeUndefined()
    expect(made.inFlight).toBe(3)
    expect(made.isAtEnd).toBe(true)
  })

  it('counts offsets without a record as finished: before, between and after records', () => {
    const { made } = partition({ position: 10 })
    made.take([record(12), record(15)], 20, 20)
    expect(made.progress.mark).toBe(12)
    expect([11, 13, 14, 16, 19].every((offset) => made.progress.has(offset))).toBe(true)
    expect([12, 15].some((offset) => made.progress.has(offset))).toBe(false)
    for (const one of handedOut(made)) made.finish(one)
    expect(made.progress.mark).toBe(20)
    made.take([], 25, 25)
    expect(made.progress.mark).toBe(25)
    expect(made.position).toBe(25)
  })

  it('skips records that the previous owner finished', () => {
    const progress = new Progress(5, [[6, 8]])
    const { made } = partition({ position: 5, progress })
    made.take(
      [5, 6, 7, 8].map((offset) => record(offset)),
      9,
      9,
    )
    expect(offsetsOf(handedOut(made))).toEqual([5, 8])
  })

  it('delivers returned records before later ones, in any order of return', () => {
    const { made } = partition()
    made.take(
      [0, 1, 2, 3, 4].map((offset) => record(offset)),
      5,
      5,
    )
    const [first, second, third] = [0, 1, 2].map(() => made.next(NOW) as KafkaRecord)
    for (const one of [third, first, second]) made.returnToPartition(one as KafkaRecord)
    expect(made.inFlight).toBe(0)
    expect(offsetsOf(handedOut(made))).toEqual([0, 1, 2, 3, 4])
  })

  it('stops reading ahead at 1,000 records or 2 MB, and continues when they are delivered', () => {
    const { made } = partition()
    made.take(
      Array.from({ length: 999 }, (_, offset) => record(offset)),
      999,
      5_000,
    )
    expect(made.wantsMore).toBe(true)
    made.take([record(999)], 1_000, 5_000)
    expect(made.wantsMore).toBe(false)
    made.next(NOW)
    expect(made.wantsMore).toBe(true)
    const { made: heavy } = partition()
    heavy.take([{ ...record(0), value: Buffer.alloc(2_097_152) }], 1, 9)
    expect(heavy.wantsMore).toBe(false)
    heavy.next(NOW)
    expect(heavy.wantsMore).toBe(true)
  })

  it('neither delivers nor reads more when it is being released', () => {
    const { made } = partition()
    made.take([record(0), record(1)], 2, 2)
    const first = made.next(NOW) as KafkaRecord
    made.isClosing = true
    made.returnToPartition(first)
    expect(made.next(NOW)).toBeUndefined()
    expect(made.wantsMore).toBe(false)
  })
})

describe('a partition of a retry topic', () => {
  it('returns the due time of its first record, one millisecond after its delay', () => {
    const { made } = partition({ tierMs: 250 })
    made.take([record(0), record(1, null, NOW + 100)], 2, 2)
    expect(made.next(NOW)).toBe(NOW + 251)
    expect(made.next(NOW + 250)).toBe(NOW + 251)
    expect(made.next(NOW + 250.9)).toBe(NOW + 251)
    expect(made.next(NOW + 251)).toMatchObject({ offset: 0 })
    expect(made.next(NOW + 251)).toBe(NOW + 351)
    expect(made.inFlight).toBe(1)
  })

  it('delivers a replay immediately, and a retry of it when it is due', () => {
    const { made } = partition({ tierMs: 250 })
    const header = (name: string) => [Buffer.from(name), Buffer.from('x')] as const
    const replay = { ...record(0), headers: [header('redrive-replay-id')] }
    const headers = [header('redrive-replay-id'), header('redrive-reason')]
    made.take([replay, { ...record(1), headers }], 2, 2)
    expect(made.next(NOW)).toMatchObject({ offset: 0 })
    expect(made.next(NOW)).toBe(NOW + 251)
  })

  it('delivers a returned record immediately, because it was due before', () => {
    const { made } = partition({ tierMs: 250 })
    made.take([record(0), record(1, null, NOW + 9_000)], 2, 2)
    made.returnToPartition(made.next(NOW + 251) as KafkaRecord)
    expect(made.next(NOW + 251)).toMatchObject({ offset: 0 })
  })
})

describe('a partition in lane order', () => {
  it('parks later records of a lane, and delivers other lanes', () => {
    const { made } = partition({ isOrdered: true })
    made.take([record(0, 'a'), record(1, 'a'), record(2, 'b'), record(3), record(4, 'a')], 5, 5)
    const [first, b, keyless] = handedOut(made)
    expect(offsetsOf([first, b, keyless] as KafkaRecord[])).toEqual([0, 2, 3])
    expect(made.parked).toBe(2)
    expect(made.finish(b as KafkaRecord)).toBe(false)
    expect(made.finish(keyless as KafkaRecord)).toBe(false)
    expect(made.finish(first as KafkaRecord)).toBe(true)
    expect(made.progress.mark).toBe(1)
    const [second, ...none] = handedOut(made)
    expect([second?.offset, none]).toEqual([1, []])
    expect(made.finish(second as KafkaRecord)).toBe(true)
    const [third] = handedOut(made)
    expect(made.finish(third as KafkaRecord)).toBe(false)
    expect([made.progress.mark, made.parked, made.inFlight]).toEqual([5, 0, 0])
  })

  it('parks no record when the lane is free again', () => {
    const { made } = partition({ isOrdered: true })
    made.take([record(0, 'a'), record(1, 'a')], 2, 4)
    made.finish(made.next(NOW) as KafkaRecord)
    made.finish(made.next(NOW) as KafkaRecord)
    made.take([record(2, 'a')], 3, 4)
    expect(made.next(NOW)).toMatchObject({ offset: 2 })
    made.take([record(3, 'a')], 4, 4)
    expect(made.next(NOW)).toBeUndefined()
    expect(made.parked).toBe(1)
  })

  it('parks two lanes separately', () => {
    const { made } = partition({ isOrdered: true })
    made.take([record(0, 'a'), record(1, 'b'), record(2, 'a'), record(3, 'b')], 4, 4)
    const [a, b] = handedOut(made)
    made.finish(b as KafkaRecord)
    expect(offsetsOf(handedOut(made))).toEqual([3])
    made.finish(a as KafkaRecord)
    expect(offsetsOf(handedOut(made))).toEqual([2])
  })

  it('keeps the position and the lane of a returned record', () => {
    const { made } = partition({ isOrdered: true })
    made.take([record(0, 'a'), record(1, 'a'), record(2, 'b')], 3, 3)
    const first = made.next(NOW) as KafkaRecord
    made.returnToPartition(first)
    // The record keeps its lane: the second stays parked, and the third is delivered.
    expect(offsetsOf(handedOut(made))).toEqual([0, 2])
    expect(made.parked).toBe(1)
    made.finish(first)
    expect(offsetsOf(handedOut(made))).toEqual([1])
  })

  it('copies the bytes of a parked record', () => {
    const { made } = partition({ isOrdered: true })
    const shared = Buffer.alloc(4_096, 'x')
    const parked: KafkaRecord = {
      ...record(1, 'a'),
      key: shared.subarray(0, 1),
      value: shared.subarray(1, 3),
      headers: [
        [shared.subarray(3, 5), null],
        [shared.subarray(5, 6), shared.subarray(6, 9)],
      ],
    }
    const before: KafkaRecord = { ...record(0), key: Buffer.from('x') }
    made.take([before, parked], 2, 2)
    made.next(NOW)
    expect(made.next(NOW)).toBeUndefined()
    made.finish(before)
    const handed = made.next(NOW) as KafkaRecord
    expect(handed).toEqual(parked)
    shared.fill('y')
    expect(handed.key?.toString()).toBe('x')
    expect(handed.value?.toString()).toBe('xx')
    expect(handed.headers.map(([name, value]) => [name.toString(), value?.toString()])).toEqual([
      ['xx', undefined],
      ['x', 'xxx'],
    ])
  })

  it('uses keys of any bytes as separate lanes', () => {
    const { made } = partition({ isOrdered: true })
    const keys = [
      Buffer.from([0xff]),
      Buffer.from([0xfe]),
      Buffer.from([0xc3, 0x28]),
      Buffer.alloc(0),
    ]
    made.take(
      keys.map((key, offset) => ({ ...record(offset), key })),
      4,
      4,
    )
    expect(offsetsOf(handedOut(made))).toEqual([0, 1, 2, 3])
  })
})

describe('a partition with a full commit', () => {
  it('continues reading when its slow record is finished, although no record is parked', () => {
    // The maximum number of finished records that a commit can contain.
    const span = 4_194_304
    const { made } = partition({ progress: new Progress(0, [[1, span + 1]]) })
    const room: boolean[] = []
    const handOut = new Dispatcher({
      source: 'orders',
      clock: new BrokerClock(() => Promise.resolve(undefined)),
      isHeldBack: () => false,
      onRoom: (one) => void room.push(one.wantsMore),
      onLeft: () => undefined,
    })
    handOut.limit = 10
    const delivered: KafkaDelivery[] = []
    handOut.start({ deliver: (one) => void delivered.push(one), lost: () => undefined })
    made.take([record(0)], span + 1, span + 1)
    handOut.ready(made)
    expect(room).toEqual([false, false])
    expect(handOut.finish(delivered[0] as KafkaDelivery)).toBe(true)
    expect(room.at(-1)).toBe(true)
  })
})
