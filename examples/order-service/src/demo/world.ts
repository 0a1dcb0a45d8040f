import { randomBytes } from 'node:crypto'
import { type Config, readConfig } from '../config.ts'
import { Orders } from '../orders.ts'
import { Database } from './database.ts'
import { Gateway } from './gateway.ts'
import { Narrator } from './narrator.ts'
import { Service } from './service.ts'
import { Subscriber } from './subscriber.ts'

/** Everything the demo uses, with names that no other program uses. */
export class World {
  readonly story = new Narrator()
  readonly database: Database
  readonly gateway: Gateway
  readonly subscriber: Subscriber
  /** Orders that must be paid at the end. */
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

  /** Places an order as a customer does. Returns its id. */
  async buy(sku: 'mug' | 'poster' = 'mug', currency = 'EUR'): Promise<string> {
    const orderId = `order-${this.orderIds.length + 1}`
    await this.#orders.place({ orderId, sku, amountCents: 1250, currency })
    this.orderIds.push(orderId)
    return orderId
  }

  get service(): Service {
    if (this.#service === undefined)
      throw new Error('The service is not running. Call deploy() first.')
    return this.#service
  }

  /** Starts the service with these changes of the defaults. */
  async deploy(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const own = {
      DATABASE_URL: this.database.url,
      SHOP_EXCHANGE: this.#exchange,
      PAYMENTS_URL: this.gateway.url,
      // Short, so that chapter 5 does not wait long.
      LEASE_MS: '2000',
    }
    this.#service = new Service({ ...own, ...env }, (line) => this.story.quote(line))
    await this.#service.waitForLog(/event=started/)
  }

  async end(): Promise<void> {
    await this.#service?.kill()
  }
}

type Step = () => unknown

/** Creates the world, plays in it, and removes all of it. Returns every error. */
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
      `${name} at ${host}: ${why}. Start it with: dev/services up postgres rabbitmq`,
      { cause },
    )
  }
}
