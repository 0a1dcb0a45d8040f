import { describe, expect, it } from 'vitest'
import { BrokerClock } from '../src/consume/broker-clock.ts'
import { CrashEvidence } from '../src/consume/crash-evidence.ts'
import { Dispatcher } from '../src/consume/dispatcher.ts'
import { Partition } from '../src/consume/partition.ts'
import { Progress } from '../src/consume/progress.ts'
import { type Header, type KafkaDelivery, type KafkaRecord, TIME_RECORD } from '../src/delivery.ts'
import type { TopicPartition } from '../src/protocol/topic-partition.ts'

const LOCAL = 1_000_000
const AHEAD_MS = 120_000

/** A clock whose local time and time records the test controls. The brokers are `aheadMs` ahead. */
function clockAt({ aheadMs = 0 } = {}) {
  const stage = {
    now: LOCAL,
    aheadMs,
    stored: [] as TopicPartition[],
    /** Returns the response to a time record. */
    answer: async (): Promise<number | undefined> => stage.now + stage.aheadMs,
  }
  const clock = new BrokerClock(
    (topicPartition) => {
      stage.stored.push(topicPartition)
      return stage.answer()
    },
    () => stage.now,
  )
  return { clock, stage }
}

/** Resolves when the response to a time record has been processed. */
const answered = () => new Promise((resolve) => setImmediate(resolve))

function partitionOf({ tierMs = 5_000, number = 0 } = {}): Partition {
  return new Partition({
    topicPartition: { topic: `orders.billing.retry.${tierMs}`, partition: number },
    tierMs,
    progress: new Progress(0),
    deaths: new CrashEvidence(),
    position: 0,
    isOrdered: false,
    onTaken: () => undefined,
    onOutOfRange: () => Promise.resolve(),
  })
}

const NO_HEADERS: readonly Header[] = []

const recordAt = (offset: number, timestamp: number, headers = NO_HEADERS): KafkaRecord => ({
  topic: 'orders.billing.retry.5s',
  partition: 0,
  offset,
  timestamp,
  key: null,
  value: headers === TIME_RECORD.headers ? null : Buffer.from('{}'),
  headers,
})

/** A partition with one record that has just arrived. */
function arrivedIn(clock: BrokerClock, timestamp: number): Partition {
  const made = partitionOf()
  made.take([recordAt(0, timestamp)], 1, 1)
  clock.sees(made)
  return made
}

describe('the time of the brokers', () => {
  it.each([AHEAD_MS, -AHEAD_MS])('is measured when they are %d ms ahead', async (aheadMs) => {
    const { clock, stage } = clockAt({ aheadMs })
    const made = arrivedIn(clock, LOCAL - 1_000_000)
    clock.measure(made)
    await answered()
    stage.now += 700
    expect(clock.now(made)).toBe(stage.now + aheadMs)
  })

  it('counts from the last record that arrived, until it is measured', () => {
    const { clock, stage } = clockAt()
    const made = arrivedIn(clock, LOCAL - 60_000)
    stage.now += 700
    expect(clock.now(made)).toBe(stage.now - 60_000)
    made.take([recordAt(1, stage.now - 10)], 2, 2)
    clock.sees(made)
    stage.now += 5
    // An empty read, and another look at the same record.
    made.take([], 2, 2)
    clock.sees(made)
    expect(clock.now(made)).toBe(stage.now - 10)
  })

  it('is not later than the response to the time record shows, although it arrived late', async () => {
    const { clock, stage } = clockAt()
    const made = arrivedIn(clock, LOCAL - 60_000)
    stage.answer = async () => {
      const stored = stage.now
      stage.now += 300
      return stored
    }
    clock.measure(made)
    await answered()
    expect(clock.now(made)).toBe(LOCAL)
  })

  it('is not measured in a topic with the timestamps of producers', async () => {
    const { clock, stage } = clockAt()
    stage.answer = () => Promise.resolve(undefined)
    const made = arrivedIn(clock, LOCAL - 60_000)
    clock.measure(made)
    await answered()
    expect(clock.now(made)).toBe(LOCAL - 60_000)
  })

  it('counts from arrivals again after ten minutes, because clocks drift', async () => {
    const { clock, stage } = clockAt({ aheadMs: AHEAD_MS })
    clock.measure(arrivedIn(clock, LOCAL + AHEAD_MS))
    await answered()
    // The clock of a broker is set back.
    stage.aheadMs = 0
    stage.now += 600_000
    const made = arrivedIn(clock, stage.now)
    expect(clock.now(made)).toBe(stage.now)
    clock.measure(made)
    await answered()
    expect(clock.now(made)).toBe(stage.now)
  })
})

describe('a time record', () => {
  it('is sent once in ten minutes', async () => {
    const { clock, stage } = clockAt()
    const made = partitionOf({ number: 2 })
    clock.measure(made)
    clock.measure(made)
    await answered()
    stage.now += 599_999
    clock.measure(made)
    expect(stage.stored).toEqual([{ topic: 'orders.billing.retry.5000', partition: 2 }])
    stage.now += 1
    clock.measure(made)
    expect(stage.stored).toHaveLength(2)
  })

  it('that failed is sent again after ten seconds', async () => {
    const { clock, stage } = clockAt()
    stage.answer = () => Promise.reject(new Error('NOT_LEADER_OR_FOLLOWER'))
    clock.measure(partitionOf())
    await answered()
    stage.now += 9_999
    clock.measure(partitionOf())
    expect(stage.stored).toHaveLength(1)
    stage.now += 1
    clock.measure(partitionOf())
    expect(stage.stored).toHaveLength(2)
  })

  it('is finished and never delivered', () => {
    const made = partitionOf()
    made.take([recordAt(0, LOCAL), recordAt(1, LOCAL + 1, TIME_RECORD.headers)], 2, 2)
    expect(made.newest).toEqual({ timestamp: LOCAL + 1 })
    const due = LOCAL + 5_001
    expect(made.next(due - 1)).toBe(due)
    expect(made.next(due)).toMatchObject({ offset: 0 })
    expect(made.next(due)).toBeUndefined()
    made.finish(recordAt(0, LOCAL))
    expect(made.progress.mark).toBe(2)
  })

  it('in the topic of the application is a message of the application', () => {
    const made = partitionOf({ tierMs: 0 })
    made.take([recordAt(0, LOCAL, TIME_RECORD.headers)], 1, 1)
    expect(made.next(0)).toMatchObject({ offset: 0 })
  })
})

describe('retries', () => {
  function dispatcherOf(made: Partition, aheadMs = 0) {
    const { clock, stage } = clockAt({ aheadMs })
    const delivered: KafkaDelivery[] = []
    const dispatcher = new Dispatcher({
      source: 'orders',
      clock,
      isHeldBack: () => false,
      onRoom: () => undefined,
      onLeft: () => undefined,
    })
    dispatcher.limit = 10
    dispatcher.start({ deliver: (one) => void delivered.push(one), lost: () => undefined })
    return { stage, dispatcher, delivered }
  }

  it.each([AHEAD_MS, 0, -AHEAD_MS])(
    'are delivered after their delay when the brokers are %d ms ahead',
    async (aheadMs) => {
      const made = partitionOf()
      const { dispatcher, delivered, stage } = dispatcherOf(made, aheadMs)
      made.take([recordAt(0, LOCAL + aheadMs)], 1, 1)
      dispatcher.ready(made)
      await answered()
      expect(stage.stored).toHaveLength(1)
      stage.now += 5_000
      dispatcher.ready(made)
      expect(delivered).toHaveLength(0)
      stage.now += 1
      dispatcher.ready(made)
      expect(delivered).toHaveLength(1)
      dispatcher.close()
    },
  )

  it('that are old are delivered within a second after the measurement', async () => {
    const made = partitionOf()
    const { dispatcher, delivered } = dispatcherOf(made)
    made.take([recordAt(0, LOCAL - 60_000)], 1, 1)
    dispatcher.ready(made)
    expect(delivered).toHaveLength(0)
    await expect.poll(() => delivered).toHaveLength(1)
    dispatcher.close()
  })

  it('wait for the rest of a split delay, without the time that they were late', () => {
    const made = partitionOf()
    const { dispatcher, delivered, stage } = dispatcherOf(made)
    const headers = (remaining: string): readonly Header[] =>
      [
        ['redrive-version', '1'],
        ['redrive-remaining', remaining],
      ].map(([name = '', value = '']) => [Buffer.from(name), Buffer.from(value)])
    const late = recordAt(2, LOCAL + 6_001, TIME_RECORD.headers)
    made.take([recordAt(0, LOCAL, headers('3000')), recordAt(1, LOCAL, headers('400')), late], 3, 3)
    stage.now += 6_001
    dispatcher.ready(made)
    expect(delivered.map(({ cycle }) => cycle.remainingMs)).toEqual([2_000, 0])
  })
})
