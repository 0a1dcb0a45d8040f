// The peers: loggers with a transport to Loki. They batch by time and not by number, so a request
// contains all entries since the last one. They do not report whether an event arrived.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import winston from 'winston'
import LokiTransport from 'winston-loki'
import type { Contender } from './contender.ts'
import { orderPaid, TYPE } from './event.ts'
import { BATCH } from './pace.ts'

/**
 * 10 ms between two requests. Their default of 5 s would measure the wait for the last one. A
 * request then contains some hundred entries, which is to their advantage.
 */
const INTERVAL_S = 0.01

const LABELS = { service_name: 'bench' }

/** Yields to the event loop after each batch, because they send from timers. */
async function inTurns(count: number, log: (number: number) => void): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    log(number)
    if (number % BATCH === BATCH - 1) await nextLoopTurn()
  }
}

/** pino-loki in pino's worker thread. The line also contains level and time, and there is no id. */
export async function pinoLoki(host: string): Promise<Contender> {
  const transport = pino.transport({
    target: import.meta.resolve('pino-loki'),
    // No limit: with a limit it would drop the oldest without a report.
    options: { host, labels: LABELS, batching: { interval: INTERVAL_S, maxBufferSize: 0 } },
  })
  const logger = pino({ base: { hostname: 'bench' } }, transport)
  const { promise, resolve } = Promise.withResolvers<void>()
  transport.once('ready', resolve)
  await promise
  return {
    emit: (count) => inTurns(count, (number) => logger.info(orderPaid(number))),
    close() {
      transport.end()
    },
  }
}

/** winston-loki with JSON, as all other candidates use it. */
export function winstonLoki(host: string): Contender {
  const transport = new LokiTransport({
    host,
    json: true,
    interval: INTERVAL_S,
    labels: LABELS,
    // Only the message is the line. Without this format it would write all fields again.
    format: winston.format.printf(({ message }) => String(message)),
    gracefulShutdown: false,
  })
  const logger = winston.createLogger({ transports: [transport] })
  const log = (number: number) => {
    const message = JSON.stringify(orderPaid(number))
    logger.info({ message, id: randomUUID(), type: TYPE })
  }
  return {
    emit: (count) => inTurns(count, log),
    close: () => transport.close(),
  }
}
