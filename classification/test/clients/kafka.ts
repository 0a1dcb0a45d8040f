/** Kafka: a real broker, and a broker that rejects passwords. */
import { Kafka, type KafkaConfig, logLevel, type Producer } from 'kafkajs'
import { listenAsStrictKafka } from '../servers/kafka.ts'
import { MISSING_HOST, PATIENCE_MS, type Provocations, type Site } from '../site.ts'

/**
 * The first request may take the longer of both timeouts. The time is long enough to connect on a busy machine, which
 * would fail in another way.
 */
const HELLO_MS = 2000

const TOPIC = 'redrive-classification'

function kafkaAt(broker: string, config: Partial<KafkaConfig>): Kafka {
  return new Kafka({
    brokers: [broker],
    logLevel: logLevel.NOTHING,
    connectionTimeout: PATIENCE_MS,
    requestTimeout: PATIENCE_MS,
    retry: { retries: 0, initialRetryTime: 1 },
    ...config,
  })
}

async function withProducer(
  broker: string,
  work: (producer: Producer) => Promise<unknown>,
  config: Partial<KafkaConfig> = {},
): Promise<unknown> {
  const producer = kafkaAt(broker, config).producer({ allowAutoTopicCreation: false })
  try {
    await producer.connect()
    return await work(producer)
  } finally {
    await producer.disconnect()
  }
}

const nothing = async () => undefined
const serverOf = (site: Site) => site.url('kafka')
const sendTo =
  (topic: string, value: string, acks = -1) =>
  (producer: Producer) =>
    producer.send({ topic, acks, messages: [{ value }] })

/** Creates a topic that accepts only small messages. */
async function createTopic(broker: string): Promise<void> {
  const admin = kafkaAt(broker, {}).admin()
  await admin.connect()
  const configEntries = [{ name: 'max.message.bytes', value: '200' }]
  await admin.createTopics({
    waitForLeaders: true,
    topics: [{ topic: TOPIC, numPartitions: 1, configEntries }],
  })
  await admin.disconnect()
}

export const KAFKA_CLIENTS: Provocations = {
  kafkajs: {
    'closed port': async (site) => withProducer(`127.0.0.1:${await site.closedPort()}`, nothing),
    'host does not exist': () => withProducer(`${MISSING_HOST}:9092`, nothing),
    'no response': async (site) =>
      withProducer(`127.0.0.1:${await site.silentPort()}`, nothing, {
        connectionTimeout: HELLO_MS,
        requestTimeout: HELLO_MS,
      }),
    'connection reset': async (site) =>
      withProducer(`127.0.0.1:${await site.resetPort()}`, nothing),
    'password rejected': async (site) =>
      withProducer(`127.0.0.1:${await site.start(listenAsStrictKafka())}`, nothing, {
        sasl: { mechanism: 'plain', username: 'app', password: 'wrong' },
      }),
    'topic does not exist': async (site) =>
      withProducer(await serverOf(site), sendTo('redrive-none', 'any')),
    'name of a topic is not valid': async (site) =>
      withProducer(await serverOf(site), sendTo('not valid', 'any')),
    'message too large': async (site) => {
      await createTopic(await serverOf(site))
      return withProducer(await serverOf(site), sendTo(TOPIC, 'x'.repeat(1000)))
    },
    'client disconnected': async (site) =>
      withProducer(await serverOf(site), async (producer) => {
        await producer.disconnect()
        return sendTo(TOPIC, 'any')(producer)
      }),
  },
}
