/** A Redrive consumer with an inbox. It fails until the bug is fixed. */
import type { PolicyOptions } from '@redrive/core'
import { postgresInbox } from '@redrive/postgres'
import { consume, type Inbox, type Transport } from '@redrive/runtime'
import type { PoolClient } from 'pg'
import { addEffect, openDatabase } from '../../harness/effects.ts'
import { openHistory } from '../../evidence/history.ts'
import { brokerOf } from '../brokers/broker.ts'
import type { Where } from '../options.ts'
import { type Order, failureOf } from './orders.ts'
import { ready } from '../../harness/process.ts'

export interface ConsumerProgram extends Where {
  readonly name: string
  readonly folder: string
  /**
   * `'plain'`: each failure becomes a dead letter, and nothing else happens. `'usual'`: the default
   * policy.
   */
  readonly policy: 'plain' | 'usual'
  /** Whether the bug is fixed from the start. Otherwise the message `fixed` fixes it. */
  readonly isFixed: boolean
  /** URL called for each order before its effect. Default: none. */
  readonly downstreamUrl?: string
}

const options = JSON.parse(process.argv[2] ?? '') as ConsumerProgram
const { kind, queue, name, folder, policy, downstreamUrl } = options
let isFixed = options.isFixed
const history = openHistory(folder, name)
const broker = await brokerOf(kind)
const CONCURRENCY = 20
/** One connection for each handler, plus the connections of the transport. */
const pool = openDatabase(options.consumerUrl, { connections: CONCURRENCY + 4 })

/** These guards are off: the failures here must not trigger them. */
const PLAIN: PolicyOptions = {
  retry: { attempts: 1 },
  adaptiveConcurrency: 'off',
  poison: 'off',
  flood: 'off',
  breaker: 'off',
  outage: 'off',
}

/** Records every replay when it arrives. */
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

/** Records every handled message after its commit. */
const watchedInbox: Inbox<PoolClient> = {
  ...inbox,
  async handle(entry, work, attempt) {
    const answer = await inbox.handle(entry, work, attempt)
    history.write({ what: 'effect', id: entry.key, isNew: answer === 'handled' })
    return answer
  },
}

async function callDownstream(id: string, signal: AbortSignal): Promise<void> {
  const { status } = await fetch(`${downstreamUrl}/${id}`, { method: 'POST', signal })
  if (status !== 200) throw Object.assign(new Error(`orders returned ${status}`), { status })
}

await consume<Order, PoolClient>(
  watched(broker.transport(options, pool)),
  async ({ body }, { cycle, tx, signal }) => {
    if (!isFixed) throw failureOf(body)
    if (body.failsAgain && cycle === 2) throw new Error(`article of order ${body.id} is sold out`)
    if (downstreamUrl !== undefined) await callDownstream(body.id, signal)
    await addEffect(tx, queue, body.id, name)
  },
  {
    name: queue,
    inbox: watchedInbox,
    concurrency: CONCURRENCY,
    ...(policy === 'plain' ? PLAIN : {}),
  },
)
ready((word) => {
  if (word === 'fixed') isFixed = true
})
