import { kafka, kafkaSink, kafkaSource } from '@redrive/kafka'
import * as admin from '../../kafka/broker.ts'
import { groupOf } from '../../kafka/topology.ts'
import type { Where } from '../options.ts'
import type { Broker } from './parts.ts'

const PARTITIONS = 2
const REPLICAS = 1

async function asAdmin(
  { kafkaBroker }: Where,
  work: (broker: admin.Broker) => Promise<void>,
): Promise<void> {
  const one = admin.brokerAt([kafkaBroker])
  try {
    await work(one)
  } finally {
    await one.close()
  }
}

const at = ({ kafkaBroker, queue }: Where) => ({
  brokers: [kafkaBroker],
  topic: queue,
  group: groupOf(queue),
})

export const broker: Broker = {
  transport: (where, _, takeOver) =>
    kafka({ ...at(where), ...(takeOver === undefined ? {} : { sessionTimeout: takeOver }) }),
  source: (where) => kafkaSource(at(where)),
  sink: ({ kafkaBroker, queue }) => kafkaSink({ brokers: [kafkaBroker], topic: queue }),
  declare: (where) =>
    asAdmin(where, (one) => admin.createTopics(one, [where.queue], PARTITIONS, REPLICAS)),
  forget: (where) => asAdmin(where, (one) => admin.deleteRun(one, where.queue)),
}
