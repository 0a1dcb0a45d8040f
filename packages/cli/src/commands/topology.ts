import type { Unreadable } from '@redrive/doctor'
import type { TopologyFacts } from '@redrive/doctor/internal'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { filledAddress } from '../server/address.ts'
import { brokerAt, type Brokers, brokersIn } from '../server/brokers.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'

export interface TopologyOptions extends CommonOptions, ConfigOptions {
  /** Prints a Mermaid flowchart instead of a tree. */
  readonly mermaid?: boolean
}

interface BrokerTopology extends TopologyFacts {
  readonly unreadable: readonly Unreadable[]
}

/** Prints queues, topics and the routes between them, read from the brokers. */
export async function topology(
  io: Io,
  named: readonly string[],
  options: TopologyOptions,
): Promise<ExitCode> {
  const { asMermaid, asTree } = await import('@redrive/doctor/internal')
  const brokers =
    named.length > 0
      ? (await Promise.all(named.map((one) => filledAddress(io, one)))).map((one) => brokerAt(one))
      : await brokersIn((await loaded(io, options)).config)
  const all: BrokerTopology[] = []
  for (const broker of brokers) all.push(...(await readTopology(broker)))
  const places = all.flatMap((one) => one.places)
  const routes = all.flatMap((one) => one.routes)
  const unreadable = all.flatMap((one) => one.unreadable)
  print(io, options, {
    json: { places, routes },
    lines: places,
    human: (page) => {
      if (options.mermaid) page.block(asMermaid({ places, routes }).trimEnd(), '')
      else for (const line of asTree({ places, routes })) page.line`${line}`
    },
  })
  for (const { what, why, allow } of unreadable) say(io)`Cannot read ${what}: ${why}. ${allow}`
  return unreadable.length === 0 ? EXIT.ok : EXIT.failure
}

/** Reads the topology of a broker. A database has none: an outbox is one table. */
async function readTopology({
  rabbitmq,
  kafka,
  nats,
}: Brokers): Promise<readonly BrokerTopology[]> {
  const [{ readKafka, readNats, readRabbitmq }, { kafkaTopology, natsTopology, rabbitmqTopology }] =
    await Promise.all([import('@redrive/doctor'), import('@redrive/doctor/internal')])
  if (rabbitmq !== undefined) {
    const facts = await readRabbitmq(rabbitmq)
    return [{ ...rabbitmqTopology(facts), unreadable: facts.unreadable }]
  }
  if (nats !== undefined) {
    const facts = await readNats(nats)
    return [{ ...natsTopology(facts), unreadable: facts.unreadable }]
  }
  if (kafka === undefined) return []
  const facts = await readKafka(kafka)
  return [{ ...kafkaTopology(facts), unreadable: facts.unreadable }]
}
