import { randomBytes } from 'node:crypto'
import { type Config, readConfig } from '../config.ts'
import { Orders } from '../orders.ts'
import { Database } from './database.ts'
import { Gateway } from './gateway.ts'
import { Narrator } from './narrator.ts'
import { Service } from './service.ts'
import { Subscriber } from './subscriber.ts'

/** Everything the demo plays with, under names that nobody else uses. */
export class World {
  readonly story = new Narrator()
  readonly database: Database
  readonly gateway: Gateway
  readonly subscriber: Subscriber
  /** Orders that must be paid in the end. */
  readonly orderIds: string[] = []
  readonly #orders: Orders
  readonly #exchange: string
  #service: Service | undefined

  constructor(database: Database, gateway: Gateway, subscriber: Subscriber, exchange: string) {
    this.database = database
    this.gateway = gateway
    this.subscriber = subscriber
    this.#exchange = exchange
    this.#orders = new Orders(database.pool)
  }

  /** What a customer does. Answers the id of the order. */
  async buy(sku: 'mug' | 'poster' = 'mug', currency = 'EUR'): Promise<string> {
    const orderId = `order-${this.orderIds.length + 1}`
    await this.#orders.place({ orderId, sku, amountCents: 1250, currency })
    this.orderIds.push(orderId)
    return orderId
  }

  get service(): Service {
    if (this.#service === undefined) throw new Error('The service does not run.')
    return this.#service
  }

  /** Starts the service, with what is different from the defaults. */
  async deploy(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const own = {
      DATABASE_URL: this.database.url,
      SHOP_EXCHANGE: this.#exchange,
      PAYMENTS_URL: this.gateway.url,
      // Short, so that nobody has to wait long for chapter 5.
      LEASE_MS: '2000',
    }
    this.#service = new Service({ ...own, ...env }, (line) => this.story.quote(line))
    await this.#service.says(/event=started/)
  }

  async end(): Promise<void> {
    await this.#service?.kill()
  }
}

type Step = () => unknown

/** Makes the world, plays in it, and takes all of it down again. Answers everything that went wrong. */
export async function inWorld(play: (world: World) => Promise<void>): Promise<readonly unknown[]> {
  const undo: Step[] = []
  const errors: unknown[] = []
  const run = async (step: Step) => {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  await run(async () => play(await makeWorld(readConfig(process.env), undo)))
  for (const step of undo.reverse()) await run(step)
  return errors
}

async function makeWorld(config: Config, undo: Step[]): Promise<World> {
  const { databaseUrl, rabbitmqUrl } = config
  const suffix = randomBytes(4).toString('hex')
  const exchange = `shop-demo-${suffix}`
  const subscriber = await Subscriber.connect(rabbitmqUrl, exchange).catch(
    notThere('RabbitMQ', rabbitmqUrl),
  )
  undo.push(() => subscriber.close())
  const database = new Database(databaseUrl, `redrive_example_orders_${suffix}`)
  undo.push(() => database.drop())
  await database.create().catch(notThere('Postgres', databaseUrl))
  const gateway = await Gateway.open()
  undo.push(() => gateway.close())
  const world = new World(database, gateway, subscriber, exchange)
  undo.push(() => world.end())
  return world
}

function notThere(name: string, url: string): (cause: unknown) => never {
  return (cause) => {
    const { host } = new URL(url)
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `${name} at ${host}: ${why}. Is it there? dev/services up postgres rabbitmq starts it.`,
      { cause },
    )
  }
}
