import { type Consumer, consume, type Transport } from '@redrive/runtime'
import { openHistory, type HistoryWriter } from '../evidence/history.ts'
import { tamper } from './clock.ts'
import type { ConsumerOptions } from './consumer-options.ts'
import { dieAt, live, RULES } from './consumer.ts'
import { countRun, inboxOf, openDatabase } from './effects.ts'
import { handlerOf } from './handler.ts'

/** A consumer process of a broker without transactions: its effects are in PostgreSQL. */
export interface BrokerProgram<Options extends ConsumerOptions> {
  readonly options: Options
  readonly history: HistoryWriter
  /** Kills this process at an exact point. */
  readonly die: (where: string) => never
}

/** Reads the options of this process. */
export function brokerProgram<Options extends ConsumerOptions>(): BrokerProgram<Options> {
  const options = JSON.parse(process.argv[2] ?? '') as Options
  if (options.clock !== undefined) tamper(options.clock)
  const history = openHistory(options.folder, options.name)
  return { options, history, die: (where) => dieAt(history, where) }
}

/** Consumes every queue with the transport under test, until the harness stops this process. */
export async function runBroker<Options extends ConsumerOptions>(
  { options, history, die }: BrokerProgram<Options>,
  transportOf: (queue: string) => Transport,
  end: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  const { name, run, policy, queues } = options
  // These scenarios do not stop the database, so commits need not wait for the disk.
  const pool = openDatabase(options.databaseUrl, { isInHurry: true })
  const start = (queue: string): Promise<Consumer> =>
    consume(
      transportOf(queue),
      handlerOf({
        ...options,
        history,
        die,
        countRun: (id) => countRun(pool, run, id),
        takeEffect: (_, effects) => effects.add(name),
      }),
      {
        ...policy,
        classify: RULES,
        logger: 'off',
        inbox: inboxOf({
          pool,
          run,
          onSuccess: (id, isNew) => history.write({ what: 'effect', id, isNew }),
        }),
      },
    )
  await live({
    history,
    start: () => Promise.all(queues.map(start)),
    end: async () => {
      await pool.end()
      await end()
    },
  })
}
