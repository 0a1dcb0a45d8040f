import { brokerAt, createTopics, deleteRun } from '../../kafka/broker.ts'
import { until } from '../../harness/wait.ts'
import { type AlertCase, MINUTE } from '../alert-case.ts'
import type { AlertConsumer } from '../place.ts'

/** 30 s: a member of a group gets its partitions within seconds. */
const ASSIGNED = { withinMs: 30_000 }

/** Another program uses the same consumer group and has the only partition. */
export const NOTHING_ASSIGNED: AlertCase = {
  name: 'nothing-assigned',
  story: 'a consumer has no partition, because another program uses its group',
  alert: 'RedriveNothingAssigned',
  afterMs: 5 * MINUTE,
  isLong: true,
  async begin(place) {
    const { brokers } = place.addresses
    const topic = place.source
    const broker = brokerAt(brokers)
    place.onEnd(() => broker.close())
    place.onEnd(() => deleteRun(broker, topic))
    await createTopics(broker, [topic], 1)
    const kafka = { brokers, topic, group: topic }
    const members = [
      await place.consumer({ kafka, isHidden: true }),
      await place.consumer({ kafka, isHidden: true }),
    ]
    const isSettled = () =>
      [0, 1].every((count) => members.some((member) => partitionsOf(member) === count))
    await until('one of two members has the partition', isSettled, ASSIGNED)
    // Only the metrics of the one without a partition are read.
    const [idle, owner] = members.toSorted((one, other) => partitionsOf(one) - partitionsOf(other))
    place.faultBegins()
    idle?.send('expose')
    return async () => owner?.kill()
  },
}

/** Returns the last reported number of partitions. */
function partitionsOf({ messages }: AlertConsumer): number {
  const last = messages.findLast((one) => one.kind === 'assigned')
  return last !== undefined && 'partitions' in last ? last.partitions : -1
}
