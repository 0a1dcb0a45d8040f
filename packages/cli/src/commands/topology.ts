import type { TopologyFacts, Unreadable } from '@redrive/doctor'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { brokerAt, type Brokers, brokersIn } from '../server/brokers.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'

export interface TopologyOptions extends CommonOptions, ConfigOptions {
  /** A flowchart instead of a tree. */
  readonly mermaid?: boolean
}

interface Found extends TopologyFacts {
  readonly unreadable: readonly Unreadable[]
}

/** Queues, topics and the ways between them, as the brokers have them now. */
export async function topology(
  io: Io,
  named: readonly string[],
  options: TopologyOptions,
): Promise<ExitCode> {
  const { asMermaid, asTree } = await import('@redrive/doctor')
  const brokers =
    named.length > 0 ? named.map(brokerAt) : brokersIn((await loaded(io, options)).config)
  const all: Found[] = []
  for (const broker of brokers) all.push(...(await foundAt(broker)))
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
  for (const { what, why, allow } of unreadable) say(io)`Not readable: ${what}: ${why}. ${allow}`
  return unreadable.length === 0 ? EXIT.ok : EXIT.failure
}

/** Nothing for a database: an outbox is one table. */
async function foundAt({ rabbitmq, kafka }: Brokers): Promise<readonly Found[]> {
  const { kafkaTopology, rabbitmqTopology, readKafka, readRabbitmq } = await import(
    '@redrive/doctor'
  )
  if (rabbitmq !== undefined) {
    const facts = await readRabbitmq(rabbitmq)
    return [{ ...rabbitmqTopology(facts), unreadable: facts.unreadable }]
  }
  if (kafka === undefined) return []
  const facts = await readKafka(kafka)
  return [{ ...kafkaTopology(facts), unreadable: facts.unreadable }]
}
