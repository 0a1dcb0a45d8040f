import { randomUUID } from 'node:crypto'
import {
  type Catalog,
  catalog,
  migrate,
  type ReplayRequest,
  type ReplayRun,
  startBackground,
} from '@redrive/catalog'
import { migrate as migrateOutbox, postgresInbox } from '@redrive/postgres'
import { rabbitmq, rabbitmqSource } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { connect } from 'amqplib'
import { Pool, type PoolClient } from 'pg'
import { booking, type Order, orders, type Release } from './shop.ts'

const url = process.env['RABBITMQ_URL'] ?? 'amqp://guest:guest@127.0.0.1:25700'
const pool = new Pool({
  connectionString: process.env['DATABASE_URL'] ?? 'postgres://redrive@127.0.0.1:25432/redrive',
  max: 20,
})
const queue = `orders-${randomUUID().slice(0, 8)}`
const ORDERS = 300
const say = (text: string) => console.log(text)

let release: Release = 'first'

/** Stores the booking and the key of the order together, or neither. */
async function handle({ body }: { body: Order }, { tx }: { tx: PoolClient }): Promise<void> {
  const amount = booking(body, release)
  const values = [queue, body.id, amount]
  await tx.query('insert into demo_booking (queue, id, amount) values ($1, $2, $3)', values)
}

async function main(): Promise<void> {
  await migrate(pool)
  await migrateOutbox(pool)
  await pool.query('create table if not exists demo_booking (queue text, id integer, amount text)')
  const service = await consume(rabbitmq({ url, queue }), handle, {
    inbox: postgresInbox({ pool }),
    retry: { attempts: 1 },
    breaker: 'off',
    outage: 'off',
    poison: 'off',
    flood: 'off',
  })
  const desk = catalog({ pool })
  const source = rabbitmqSource({ url, queue })
  const work = await startBackground({
    catalog: desk,
    pool,
    sources: [{ source }],
    queue: `work-${queue}`,
  })
  try {
    await play(desk)
  } finally {
    await work.stop()
    await service.stop()
    await source.close()
    await pool.end()
  }
}

async function play(desk: Catalog): Promise<void> {
  say(`1. ${ORDERS} orders arrive at a service without a tax rate for Switzerland.`)
  await send()
  const groups = await until(
    'all failures are in the catalog',
    async () => {
      const found = (await desk.groups({ sources: [queue], order: 'open_count' })).groups
      const open = found.reduce((sum, one) => sum + one.openCount, 0)
      return open + (await booked()) === ORDERS ? found : undefined
    },
    { timeout: '1m' },
  )
  say(`   ${await booked()} are booked. The others failed, for ${groups.length} reasons:`)
  for (const group of groups) say(`   ${String(group.openCount).padStart(5)}  ${group.title}`)
  const [country, currency] = groups
  if (country === undefined || currency === undefined) throw new Error('Expected two groups.')

  say('2. The next release has the tax rate. Ada plans a replay of that group, Bob approves it.')
  release = 'second'
  const first = await replayed(desk, { selection: { group: country.id } })
  say(`   ${shown(first)}`)
  say(`   Paused automatically: ${first.pauseReason}`)
  say(
    '   Those orders also have no currency: open again, in the other group, in their second cycle.',
  )
  say(`   Bob checks them and resumes the run. ${shown(await finished(desk, first.id))}`)

  say('3. One patch adds the currency to the whole group. It is checked before the replay.')
  await desk.replays.setSchema({ source: queue, schema: { required: ['id', 'currency'] } })
  const selection = { group: currency.id }
  const plain = await desk.replays.plan({ selection, by: 'ada' })
  say(`   Without the patch, nothing would be replayed: ${JSON.stringify(plain.skipped)}`)
  const patch = [{ op: 'add', path: '/currency', value: 'EUR' }] as const
  say(`   ${shown(await replayed(desk, { selection, change: { patch } }))}`)

  const rest = (await desk.groups({ sources: [queue], hasOpen: true })).groups
  const total = await booked()
  if (rest.length > 0 || total !== ORDERS) {
    throw new Error(
      `${total} of ${ORDERS} orders are booked once, and ${rest.length} groups are open.`,
    )
  }
  say(`demo ok: ${total} orders, each booked once, 0 dead letters open`)
}

type ReplayInput = Pick<ReplayRequest, 'selection' | 'change'>

async function replayed(desk: Catalog, input: ReplayInput): Promise<ReplayRun> {
  const plan = await desk.replays.plan({ ...input, by: 'ada', ratePerSecond: 100 })
  say(`   Planned: ${plan.counts.planned} of ${plan.counts.planned + plan.counts.skipped}.`)
  await desk.replays.approve(plan.id, { hash: plan.hash, by: 'bob' })
  return until(
    'the run has ended or paused',
    async () => {
      const run = await desk.replays.run(plan.id)
      return run === undefined || run.state === 'running' ? undefined : run
    },
    { timeout: '1m' },
  )
}

/** Waits for the end of a run and resumes it after each pause, as an operator does after a check. */
async function finished(desk: Catalog, id: string): Promise<ReplayRun> {
  return until(
    'the run has ended',
    async () => {
      const run = await desk.replays.run(id)
      if (run?.state === 'paused') await desk.replays.resume(id, { by: 'bob' })
      return run?.state === 'done' ? run : undefined
    },
    { timeout: '1m' },
  )
}

const shown = ({ counts }: ReplayRun) =>
  `${counts.resolved} resolved with a confirmation, ${counts.failed_again} failed again, ${counts.queued} wait.`

/** Returns the number of booked orders; rejects when one is booked twice. */
async function booked(): Promise<number> {
  const { rows } = await pool.query<{ bookings: number; orders: number }>(
    `select count(*)::integer as bookings, count(distinct id)::integer as orders
      from demo_booking where queue = $1`,
    [queue],
  )
  const { bookings = 0, orders: different = 0 } = rows[0] ?? {}
  if (bookings !== different) throw new Error(`${bookings - different} orders are booked twice.`)
  return bookings
}

async function send(): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  for (const order of orders(ORDERS)) {
    channel.sendToQueue(queue, Buffer.from(JSON.stringify(order)), {
      messageId: `${queue}-${order.id}`,
      contentType: 'application/json',
      persistent: true,
    })
  }
  await channel.waitForConfirms()
  await connection.close()
}

await main()
