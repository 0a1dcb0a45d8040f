import rascalModule, { type Recovery, type Session } from 'rascal'
import { SOCKET } from './broker.ts'
import type { Contender, Stage } from './contender.ts'

const SUBSCRIPTION = 'messages'

/**
 * Queue arguments for rascal, which uses a nack and the queue's dead-letter exchange. In a usual
 * setup that is the broker's default strategy, at most once.
 */
export const AT_MOST_ONCE: Readonly<Record<string, unknown>> = {
  'x-dead-letter-strategy': undefined,
}

/** Subscribes for each sample; an error is nacked after the configured recovery. */
export const rascal =
  (recovery: readonly Recovery[] = []) =>
  async ({ url, queue, prefetch, handler }: Stage): Promise<Contender> => {
    const broker = await rascalModule.BrokerAsPromised.create(
      rascalModule.withDefaultConfig({
        vhosts: {
          '/': {
            connection: { url, socketOptions: SOCKET },
            // Already declared, with the same arguments as for all candidates.
            queues: { [queue]: { assert: false, check: true } },
          },
        },
        subscriptions: { [SUBSCRIPTION]: { vhost: '/', queue, prefetch } },
      }),
    )
    broker.on('error', fail)
    let session: Session | undefined
    return {
      async start() {
        session = await broker.subscribe(SUBSCRIPTION)
        session.on('error', fail)
        session.on('message', (_message, _content, ackOrNack) => {
          handler().then(
            () => ackOrNack(),
            (error: Error) => ackOrNack(error, recovery),
          )
        })
      },
      async stop() {
        await session?.cancel()
        session = undefined
      },
      close: () => broker.shutdown(),
    }
  }

function fail(error: Error): never {
  throw error
}
