/** A Redrive consumer with an inbox. It records every replay that it receives. */
import { flushCompileCache } from 'node:module'
import { postgresInbox } from '@redrive/postgres'
import { consume, type Inbox, type Transport } from '@redrive/runtime'
import type { PoolClient } from 'pg'
import { dieAt } from '../harness/consumer.ts'
import { ready } from '../harness/process.ts'
import { addEffect, openDatabase } from '../harness/effects.ts'
import { openHistory } from '../evidence/history.ts'
import { brokerOf } from './brokers/broker.ts'
import type { Body, CatalogConsumerOptions } from './options.ts'

const options = JSON.parse(process.argv[2] ?? '') as CatalogConsumerOptions
const { kind, queue, name, diesAfter, takeOver } = options
const history = openHistory(options.folder, name)
const CONCURRENCY = 10
/** One connection for each handler, plus the connections of the transport. */
const pool = openDatabase(options.consumerUrl, { connections: CONCURRENCY + 4 })

function watched(transport: Transport): Transport {
  const receive = transport.receive.bind(transport)
  transport.receive = (receiver) =>
    receive({
      deliver(delivery) {
        const { id, replayId } = delivery
        if (replayId !== undefined) history.write({ what: 'replay_received', id, replayId })
        receiver.deliver(delivery)
      },
      lost: (delivery) => receiver.lost(delivery),
    })
  return transport
}

const inbox = postgresInbox({ pool })
let committed = 0

/** The inbox under test, with a failpoint after its commit. */
const failing: Inbox<PoolClient> = {
  ...inbox,
  async handle(entry, work, attempt) {
    const answer = await inbox.handle(entry, work, attempt)
    if (answer === 'handled') committed += 1
    if (committed === diesAfter) dieAt(history, 'inbox committed')
    history.write({ what: 'effect', id: entry.key, isNew: answer === 'handled' })
    return answer
  },
}

await consume<Body, PoolClient>(
  watched((await brokerOf(kind)).transport(options, pool, takeOver)),
  ({ body }, { cycle, tx }) => {
    if (cycle <= body.fails) throw new Error('price is missing')
    return addEffect(tx, queue, body.id, name)
  },
  {
    name: queue,
    inbox: failing,
    concurrency: CONCURRENCY,
    retry: { attempts: 1 },
    // These guards are off: the failures here must not trigger them.
    ...{ adaptiveConcurrency: 'off', poison: 'off', flood: 'off', breaker: 'off', outage: 'off' },
  },
)
flushCompileCache()
ready()
