import rascalModule, { type Recovery, type Session } from 'rascal'
import { SOCKET } from './broker.ts'
import type { Contender, Stage } from './contender.ts'

const SUBSCRIPTION = 'messages'

/**
 * rascal leaves dead letters to the broker: a nack, and the queue's dead-letter exchange. As people
 * have it, that is the broker's default strategy, at most once.
 */
export const AT_MOST_ONCE: Readonly<Record<string, unknown>> = {
  'x-dead-letter-strategy': undefined,
}

/** Subscribes for each sample; an error is nacked after the recovery that was asked for. */
export const rascal =
  (recovery: readonly Recovery[] = []) =>
  async ({ url, queue, prefetch, handler }: Stage): Promise<Contender> => {
    const broker = await rascalModule.BrokerAsPromised.create(
      rascalModule.withDefaultConfig({
        vhosts: {
          '/': {
            connection: { url, socketOptions: SOCKET },
            // Declared already, with the arguments of everyone else.
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
