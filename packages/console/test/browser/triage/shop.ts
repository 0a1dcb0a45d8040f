import { randomUUID } from 'node:crypto'
import { GUARDS_OFF, poolOn } from '@redrive/dev-support'
import { postgresInbox } from '@redrive/postgres'
import { consume, type Consumer, type Transport } from '@redrive/runtime'
import { kafkaQueue, postgresQueue, type Queue, rabbitmqQueue } from './brokers.ts'
import { type Body, lettersOf, type Sizes, type SourceName, SOURCES } from './causes.ts'

/** The messages of a source at its broker and in the consumers after the replays. */
export interface Effects {
  /** Dead letters that wait at the broker. */
  readonly depth: number
  /** Messages that wait for the consumers. */
  readonly lag: number
  /** Rows that the handlers wrote, and how many different messages they are of. */
  readonly rows: number
  readonly messages: number
  /** Currencies in these rows. */
  readonly currencies: readonly string[]
  /** Most replays that one message had, counted before the inbox of the consumers. */
  readonly replaysOfOne: number
}

/** Three services with their queues: orders on RabbitMQ, payments on Kafka, invoices on PostgreSQL. */
export interface Shop {
  /** The value of `sources` in the config of the server. */
  readonly sources: object
  /** Writes the dead letters to the brokers. */
  fail(sizes: Sizes): Promise<void>
  effects(source: SourceName): Promise<Effects>
  end(): Promise<void>
}

const EFFECTS = `
create table triage_effect (source text not null, number integer not null, currency text not null)`
const ADD_EFFECT = `insert into triage_effect (source, number, currency) values ($1, $2, $3)`
const READ_EFFECTS = `
select count(*)::integer as rows, count(distinct number)::integer as messages,
    coalesce(array_agg(distinct currency), '{}') as currencies
  from triage_effect where source = $1`

/** 10 handlers per source. */
const CONCURRENCY = 10
/** A connection for each handler, and some for the transport and the proof. */
const CONNECTIONS = 3 * CONCURRENCY + 10

export async function openShop(databaseUrl: string): Promise<Shop> {
  const pool = poolOn(databaseUrl, CONNECTIONS)
  await pool.query(EFFECTS)
  const suffix = randomUUID().slice(0, 8)
  const queues: Readonly<Record<SourceName, Queue>> = {
    orders: await rabbitmqQueue(`triage-orders-${suffix}`),
    payments: await kafkaQueue(`triage-payments-${suffix}`),
    invoices: postgresQueue(`triage-invoices-${suffix}`, pool),
  }
  const replays = new Map<string, Set<string>>()
  const consumers: Consumer[] = []
  for (const source of SOURCES) {
    const transport = recorded(queues[source].transport, source, replays)
    const handle = ({ body }: { readonly body: Body }, tx: Effectful) => {
      if (body.currency === undefined) throw new TypeError('expected string at /currency')
      return tx.query(ADD_EFFECT, [source, body.number, body.currency])
    }
    consumers.push(
      await consume(transport, (message: { readonly body: Body }, { tx }) => handle(message, tx), {
        ...GUARDS_OFF,
        inbox: postgresInbox({ pool }),
        name: source,
        concurrency: CONCURRENCY,
        retry: { attempts: 1 },
      }),
    )
  }
  return {
    sources: Object.fromEntries(
      SOURCES.map((source) => [source, { ...queues[source].config, handler: `${source}-service` }]),
    ),
    async fail(sizes) {
      for (const source of SOURCES) {
        await queues[source].write(lettersOf(source, sizes[source]))
      }
    },
    async effects(source) {
      const { counts } = queues[source]
      const { rows } = await pool.query<Pick<Effects, 'rows' | 'messages' | 'currencies'>>(
        READ_EFFECTS,
        [source],
      )
      const [found] = rows
      if (found === undefined) throw new Error('Expected a row.')
      const of = [...replays].filter(([name]) => name.startsWith(`${source} `))
      return {
        depth: await counts.depth(),
        lag: (await counts.lag?.()) ?? 0,
        ...found,
        replaysOfOne: Math.max(0, ...of.map(([, ids]) => ids.size)),
      }
    },
    async end() {
      await Promise.all(consumers.map((one) => one.stop()))
      for (const source of SOURCES) await queues[source].end()
      await pool.end()
    },
  }
}

/** A transaction of the inbox. */
interface Effectful {
  query(text: string, values: unknown[]): Promise<unknown>
}

/** Records the replay ids of each message. The inbox would hide a second replay from the handler. */
function recorded(
  transport: Transport,
  source: SourceName,
  replays: Map<string, Set<string>>,
): Transport {
  const receive = transport.receive.bind(transport)
  transport.receive = (receiver) =>
    receive({
      deliver(delivery) {
        const { number } = JSON.parse(Buffer.from(delivery.bytes).toString()) as Body
        const name = `${source} ${number}`
        const ids = replays.get(name) ?? new Set()
        replays.set(name, ids.add(delivery.replayId ?? 'no replay'))
        receiver.deliver(delivery)
      },
      lost: (delivery) => receiver.lost(delivery),
    })
  return transport
}
