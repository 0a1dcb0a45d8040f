// Many consumers of one queue in one process: their start, memory, connections and throughput.
import { rabbitmq } from '@redrive/rabbitmq'
import { services } from '@redrive/dev-support'
import { type Consumer, consume } from '@redrive/runtime'
import type { Overrides } from '../comparison.ts'
import { type Handler, succeeding, Tally } from '../handlers.ts'
import { patiently } from '../patience.ts'
import { Broker, brokerUrl, ownQueue } from '../rabbitmq/broker.ts'
import { cpuUs, memoryKb } from './measuring.ts'
import type { Costs, Stage } from './subject.ts'

/** The same total for every number of consumers; 200 for each of 100. */
const MESSAGES = 20_000
const QUICK_MESSAGES = 4_000
const WARM_UP = 10
/** 10 in flight per consumer: 100 consumers have as many as one with a large prefetch. */
const IN_FLIGHT = 10

interface Set {
  readonly broker: Broker
  readonly queue: string
  readonly handler: Handler
  readonly tally: Tally
}

export async function openConsumers({ quick }: Overrides): Promise<Stage> {
  const broker = await Broker.open(await brokerUrl())
  const queue = ownQueue()
  await broker.declare(queue)
  const tally = new Tally()
  const set: Set = { broker, queue, tally, handler: succeeding(tally) }
  const messages = quick ? QUICK_MESSAGES : MESSAGES
  return {
    // Also declares the other queues.
    warmUp: async () => void (await round(set, WARM_UP, MESSAGES)),
    measure: (size) => round(set, size, messages),
    async close() {
      await broker.delete(queue)
      await broker.close()
    },
  }
}

async function round(set: Set, size: number, messages: number): Promise<Costs> {
  const { queue, broker, tally } = set
  const before = { kb: memoryKb(), sockets: openSockets(), reported: await reportedConnections() }
  const consumers: Consumer[] = []
  try {
    const beganAt = performance.now()
    for (let number = 0; number < size; number += 1) consumers.push(await started(set))
    const startMs = performance.now() - beganAt
    const idle: Costs = {
      memory: [memoryKb() - before.kb],
      connections: [openSockets() - before.sockets],
      'broker-connections': [(await reportedConnections()) - before.reported],
    }
    for (const one of consumers) one.pause()
    await broker.until(queue, (look) => look.consumers === 0)
    await broker.fill(queue, messages)
    const handled = tally.expect(messages)
    const cpuBefore = cpuUs()
    for (const one of consumers) one.resume()
    await patiently(handled, () => `${tally.calls} of ${messages} messages`)
    return { start: [startMs], ...idle, message: [(cpuUs() - cpuBefore) / messages] }
  } finally {
    await Promise.all(consumers.map((one) => one.stop()))
    await broker.until(queue, (look) => look.consumers === 0)
  }
}

const started = ({ broker, queue, handler }: Set): Promise<Consumer> =>
  consume(rabbitmq({ url: broker.url, queue }), handler, {
    concurrency: IN_FLIGHT,
    adaptiveConcurrency: 'off',
  })

/** Counts the TCP connections that this process has opened. */
const openSockets = () =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

/** Counts the connections of all programs. The management API would be seconds behind. */
async function reportedConnections(): Promise<number> {
  const listed = await services('do', 'rabbitmq', 'ctl', '-q', 'list_connections', 'pid')
  return listed.split('\n').filter((line) => line.startsWith('<')).length
}
