import { randomBytes } from 'node:crypto'
import { readConfig } from '../config.ts'
import { Broker } from './broker.ts'
import { Database } from './database.ts'
import { openProxy, type Proxy } from './proxy.ts'
import { Service } from './service.ts'

/** Everything the demo uses, with names that no other program uses. */
export interface World {
  readonly queue: string
  readonly broker: Broker
  readonly database: Database
  readonly proxy: Proxy
  readonly service: Service
}

type Undo = (() => unknown)[]

/** Creates the world, plays in it, and always removes it. */
export async function inWorld(
  play: (world: World) => Promise<void>,
  onLine: (line: string) => void,
): Promise<void> {
  const undo: Undo = []
  try {
    await play(await makeWorld(onLine, undo))
  } finally {
    for (const step of undo.reverse()) await step()
  }
}

async function makeWorld(onLine: (line: string) => void, undo: Undo): Promise<World> {
  const { rabbitmq, postgres } = readConfig(process.env)
  const suffix = randomBytes(4).toString('hex')
  const queue = `profile.events.demo-${suffix}`

  const broker = await Broker.connect(rabbitmq.url, queue).catch(notThere('RabbitMQ', rabbitmq.url))
  undo.push(() => broker.close())
  const database = new Database(postgres.url, `profile_demo_${suffix}`)
  undo.push(() => database.close())
  await database.answers().catch(notThere('Postgres', postgres.url))

  undo.push(() => database.cleanUp())
  await database.create()
  const proxy = await openProxy(database.address)
  undo.push(() => proxy.close())
  undo.push(() => broker.cleanUp())
  const service = new Service(
    { PROFILE_QUEUE: queue, DATABASE_URL: database.through(proxy.port), PORT: '0' },
    onLine,
  )
  undo.push(() => service.kill())
  await service.ready()
  return { queue, broker, database, proxy, service }
}

function notThere(name: string, url: string): (cause: unknown) => never {
  return (cause) => {
    const { host } = new URL(url)
    throw new Error(
      `Cannot connect to ${name} at ${host}. Start it with: dev/services up rabbitmq postgres`,
      { cause },
    )
  }
}
