import { randomUUID } from 'node:crypto'
import { Admin, Producer } from '@platformatic/kafka'
import { kafka, kafkaSource, topologyOf } from '@redrive/kafka'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { Parcels, Scan } from './parcels.ts'

const brokers = (process.env['KAFKA_BROKERS'] ?? '127.0.0.1:25900').split(',')
const topic = `scans-${randomUUID().slice(0, 8)}`
const group = 'tracking'
const STEPS = Scan.shape.step.options

/** Retries for most of a minute, so a carrier that is unreachable for seconds causes no dead letter. */
const RETRY = { attempts: 50, backoff: { kind: 'exponential', cap: '2s' } } as const

const client = { clientId: 'demo', bootstrapBrokers: brokers }
const admin = new Admin(client)
const producer = new Producer({ ...client, idempotent: true })
const say = (text: string) => console.log(text)

const scan = (parcel: string, body: unknown) => ({
  topic,
  key: Buffer.from(parcel),
  value: Buffer.from(JSON.stringify(body)),
})

async function main(): Promise<void> {
  await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 })
  const parcels = new Parcels()
  const service = await consume(
    kafka({ brokers, topic, group, order: 'lane' }),
    ({ body }) => parcels.follow(body),
    { order: 'lane', schema: Scan, breaker: 'off', retry: RETRY },
  )
  try {
    await play(parcels)
  } finally {
    await service.stop()
    await cleanUp()
  }
}

async function play(parcels: Parcels): Promise<void> {
  say('1. The carrier of P-1 does not respond. All parcels are scanned four times.')
  parcels.unreachable.add('P-1')
  for (const step of STEPS) {
    await producer.send({ messages: PARCELS.map((parcel) => scan(parcel, { parcel, step })) })
  }
  const others = PARCELS.filter((parcel) => parcel !== 'P-1')
  await until('all others are delivered', () =>
    others.every((parcel) => isThrough(parcels, parcel)),
  )
  say(`   ${others.length} parcels are delivered. P-1: ${shown(parcels, 'P-1')}`)

  say('2. The carrier is back.')
  parcels.unreachable.delete('P-1')
  await until('P-1 is delivered', () => isThrough(parcels, 'P-1'))
  say(`   P-1: ${shown(parcels, 'P-1')}`)

  say('3. A scanner sends an invalid scan.')
  await producer.send({ messages: [scan('P-2', { parcel: 'P-2', step: 'eaten by a dog' })] })
  const source = kafkaSource({ brokers, topic, group })
  await until('the scan is a dead letter', async () => (await source.depth()) === 1)
  const batch = await source.drain({ limit: 10 })
  const [deadLetter] = batch.deadLetters
  if (deadLetter === undefined) throw new Error('There is no dead letter.')
  const [attempt] = deadLetter.delivery.cycle.history
  say(`   In ${topic}.${group}.dlq: class ${deadLetter.class}, ${attempt?.message}`)

  say('4. An operator corrects it and replays it to its topic, partition and key.')
  const bytes = Buffer.from(JSON.stringify({ parcel: 'P-2', step: 'delivered' }))
  const delivery = { ...deadLetter.delivery, bytes }
  await source.publish({ deadLetter: { ...deadLetter, delivery }, replayId: randomUUID() })
  await batch.release()
  await until('P-2 has a fifth scan', () => parcels.stepsOf('P-2').length === STEPS.length + 1)
  await source.close()

  const inOrder = PARCELS.every((parcel) =>
    STEPS.every((step, at) => parcels.stepsOf(parcel)[at] === step),
  )
  if (!inOrder) throw new Error('A parcel was delivered before it was picked up.')
  say(`demo ok: ${PARCELS.length} parcels, each in order, 1 dead letter replayed, 0 lost`)
}

const PARCELS = Array.from({ length: 50 }, (_, index) => `P-${index + 1}`)

const isThrough = (parcels: Parcels, parcel: string) =>
  parcels.stepsOf(parcel).length >= STEPS.length

const shown = (parcels: Parcels, parcel: string) =>
  parcels.stepsOf(parcel).join(', ') || 'nothing yet, its scans are waiting'

async function cleanUp(): Promise<void> {
  const { retries, deadLetters } = topologyOf(topic, group, 0)
  const topics = [topic, deadLetters.name, ...retries.map(({ name }) => name)]
  await admin.deleteTopics({ topics })
  await Promise.all([admin.close(), producer.close()])
}

await main()
