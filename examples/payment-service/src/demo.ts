import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { fileStore } from '@redrive/file-store'
import {
  createEmitter,
  type DeadLetterStore,
  type Emitter,
  onEvent,
  type RedriveEvent,
} from '@redrive/runtime'
import { loki, stdout, webhook } from '@redrive/sinks'
import { until } from '@redrive/testing'
import { EVENTS } from './events.ts'
import { type OrderService, orderService } from './orders.ts'
import { EMPTY_CARD, GOOD_CARD, type Order, PaymentProvider } from './payments.ts'
import { LogStore, Output, Partner, type Receiver } from './receivers.ts'

const secret = `whsec_${randomBytes(32).toString('base64')}`
const logStore = new LogStore()
const partner = new Partner(secret)
const output = new Output()
const receivers: Readonly<Record<string, Receiver>> = { loki: logStore, partner, stdout: output }

/** Ids of events that must reach all three sinks, one for each order. */
const payments = new Set<string>()
/** Payment events that the rate limit held back. */
const limited = new Set<string>()
let orders = 0
/** Number of events sent again, for all sinks together. */
let replayed = 0

const ORDERS_IN_OUTAGE = 30
const REFUNDS_IN_OUTAGE = 5
const MISSED = ORDERS_IN_OUTAGE + REFUNDS_IN_OUTAGE

const say = (text: string) => console.log(text)

function chapter(text: string): void {
  output.isFirst = true
  say(`\n${text}`)
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'payment-service-'))
  await Promise.all([logStore.up(), partner.up()])
  const store = fileStore({ directory })
  const events = createEmitter({
    sinks: {
      loki: loki({ url: logStore.url, labels: { service_name: 'payments' } }),
      partner: webhook({ url: partner.url, secret, allowHttp: true, allow: ['127.0.0.1'] }),
      stdout: stdout({ stream: output }),
    },
    store,
    schemas: EVENTS,
    queue: { maxEvents: 10_000, onFull: 'store' },
    // Over the limit, page views are dropped; payments are stored and sent later.
    rateLimit: { perSecond: 50, burst: 200 },
    filter: { keep: [/^order\./, /^payment\./] },
    policy: { timeout: '2s', retry: { attempts: 2 } },
    autoReplay: { schedule: '* * * * * *' },
  })
  const unsubscribe = onEvent(watch)
  try {
    await play(events, store, orderService(new PaymentProvider(), remembering(events)))
  } finally {
    unsubscribe()
    await events.close()
    logStore.down()
    partner.down()
    await rm(directory, { recursive: true })
  }
}

async function play(
  events: Emitter<typeof EVENTS>,
  store: DeadLetterStore,
  service: OrderService,
): Promise<void> {
  chapter('1. All sinks are healthy. Ten orders are placed; the last card has no money.')
  const first = await placed(service, 10)
  await until('all three have ten events', () => missing().length === 0)
  say(`   ${first}; ${arrived()}`)
  await forge()
  say(`   The partner rejects a forged event: ${partner.refused} signature was wrong.`)

  chapter('2. The log store goes down. Thirty more orders, and five refunds.')
  logStore.down()
  const second = await placed(service, ORDERS_IN_OUTAGE)
  await refunded(service, REFUNDS_IN_OUTAGE)
  say(`   ${second}, ${REFUNDS_IN_OUTAGE} refunded: no job failed or waited.`)
  await until('the others have everything', () => missing().every(([sink]) => sink === 'loki'))
  await until('the missed events of the log store are stored', async () => {
    const { count } = await store.stats()
    return count === MISSED
  })
  say(`   Now ${arrived()}`)
  await showStored(events, store)

  chapter('3. The log store is back. No action by a person is needed.')
  await logStore.up()
  await until('the log store has everything', () => missing().length === 0)
  await until('the store is empty', async () => (await store.stats()).count === 0)
  await until('the replay is reported', () => replayed >= MISSED)
  say(`   Its breaker closed after a health check, and ${replayed} events were replayed.`)
  say(`   Now ${arrived()}. Stored: 0.`)

  chapter('4. A crawler views page after page, and ten orders arrive at the same time.')
  const third = await whileCrawling(events, () => placed(service, 10))
  await until('the events that did not arrive are stored', () =>
    missing().every(([, id]) => limited.has(id)),
  )
  const { dropped = 0 } = events.stats().sinks['loki'] ?? {}
  say(`   ${third}. Over the limit: ${dropped} page views, which are dropped,`)
  say(`   and ${limited.size} payment events, which are stored and sent later.`)
  await until('all payments have arrived', () => missing().length === 0)
  await until('the store is empty', async () => (await store.stats()).count === 0)
  say(`   A second later: ${arrived()}. Stored: 0.`)
  check(events)
}

// ---- events -------------------------------------------------------------------------------------

/** Records emitted payments, so that the demo knows what must arrive. */
const remembering = (events: Emitter<typeof EVENTS>): Emitter<typeof EVENTS> => ({
  ...events,
  async emit(event) {
    const result = await events.emit(event)
    payments.add(result.id)
    return result
  },
})

function nextOrder(card: string): Order {
  orders += 1
  return { id: `order-${orders}`, amount: 1_000 + orders, card }
}

async function placed(service: OrderService, count: number): Promise<string> {
  const begunAt = performance.now()
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      service.place(nextOrder(index === count - 1 ? EMPTY_CARD : GOOD_CARD)),
    ),
  )
  const tookMs = Math.round(performance.now() - begunAt)
  const paid = answers.filter((answer) => answer === 'paid').length
  return `${paid} paid, ${count - paid} declined in ${tookMs} ms`
}

async function refunded(service: OrderService, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => service.refund(nextOrder(GOOD_CARD))))
}

/** Emits 500 page views between two steps until the work is done. */
async function whileCrawling<T>(
  events: Emitter<typeof EVENTS>,
  work: () => Promise<T>,
): Promise<T> {
  let isCrawling = true
  const done = work().finally(() => {
    isCrawling = false
  })
  while (isCrawling) {
    for (let view = 0; view < 500; view += 1) {
      void events.emit({ type: 'page.viewed', data: { path: `/tea/${view}` } })
    }
    await nextLoopTurn()
  }
  return done
}

/** Sends an event without the secret. */
async function forge(): Promise<void> {
  await fetch(partner.url, {
    method: 'POST',
    headers: {
      'webhook-id': 'forged',
      'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
      'webhook-signature': `v1,${randomBytes(32).toString('base64')}`,
    },
    body: '{"order":"order-1","amount":0}',
  })
}

// ---- results ------------------------------------------------------------------------------------

function watch(event: RedriveEvent): void {
  if (event.type === 'replayed') {
    replayed += event.replayed
  } else if (event.type === 'emission_failed') {
    const { result } = event
    const isKeptBack = result.kind === 'stored' && result.reason === 'rate_limited'
    if (isKeptBack) limited.add(event.event.id)
  }
}

/** Returns payments that a sink does not have. */
const missing = (): readonly (readonly [sink: string, id: string])[] =>
  Object.entries(receivers).flatMap(([sink, { ids }]) =>
    [...payments].filter((id) => !ids.has(id)).map((id) => [sink, id] as const),
  )

function arrived(): string {
  const counts = Object.entries(receivers).map(([sink, { ids }]) => {
    const here = [...payments].filter((id) => ids.has(id)).length
    return `${sink} ${here}/${payments.size}`
  })
  return `payment events at ${counts.join(', ')}`
}

async function showStored(events: Emitter<typeof EVENTS>, store: DeadLetterStore): Promise<void> {
  const { jobs, sinks } = events.stats()
  const counts = Object.entries(jobs).map(([job, { stored }]) => `${stored} of job ${job}`)
  say(`   Stored for loki: ${counts.join(', ')}. Its breaker is ${sinks['loki']?.breaker}.`)
  for (const job of Object.keys(jobs)) {
    const { deadLetters } = await store.list({ filter: { job }, limit: 2 })
    for (const { event, sink, reason, failure } of deadLetters) {
      say(`     ${job}: ${event.type} ${event.key} for ${sink}, ${reason}: ${failure.message}`)
    }
  }
}

/** Checks the printed results; throws when one is wrong. */
function check(events: Emitter<typeof EVENTS>): void {
  const { sinks } = events.stats()
  const lost = Object.values(sinks).reduce((sum, { lost: count }) => sum + count, 0)
  const wrong = [
    ...missing().map(([sink, id]) => `${sink} does not have ${id}`),
    ...(limited.size === 0 ? ['no payment was over the limit'] : []),
    ...(lost > 0 ? [`${lost} events are lost`] : []),
    ...(payments.size === orders ? [] : [`${payments.size} payment events for ${orders} orders`]),
    ...(partner.refused === 1 ? [] : [`the partner rejected ${partner.refused} events`]),
  ]
  if (wrong.length > 0) throw new Error(`The demo had unexpected results:\n- ${wrong.join('\n- ')}`)
  say(`\ndemo ok: ${payments.size} payment events at each of 3 sinks, 0 lost`)
}

await main()
