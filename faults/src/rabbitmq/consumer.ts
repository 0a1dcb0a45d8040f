/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { rabbitmq } from '@redrive/rabbitmq'
import { type Consumer, consume } from '@redrive/runtime'
import type { ConsumeMessage } from 'amqplib'
import { tamper } from '../harness/clock.ts'
import { dieAt, live, RULES } from '../harness/consumer.ts'
import { countRun, inboxOf, openDatabase } from '../harness/effects.ts'
import { handlerOf } from '../harness/handler.ts'
import { keyIn } from '../evidence/check-keys.ts'
import { openHistory } from '../evidence/history.ts'
import type { RabbitConsumerOptions } from './consumer-options.ts'
import { connectWith } from './failpoints.ts'

const options = JSON.parse(process.argv[2] ?? '') as RabbitConsumerOptions
const { name, run, urls, policy, failpoint } = options
if (options.clock !== undefined) tamper(options.clock)
const history = openHistory(options.folder, name)
// This scenario does not stop the database, so commits need not wait for the disk.
const pool = openDatabase(options.databaseUrl, { isInHurry: true })
const die = (where: string) => dieAt(history, where)

const laneOf = ({ properties }: ConsumeMessage) => keyIn(String(properties.messageId))

const start = (queue: string): Promise<Consumer> =>
  consume(
    rabbitmq({
      url: urls,
      queue,
      ...(options.topology === undefined ? {} : { topology: options.topology }),
      ...(options.classicQueues?.includes(queue) ? { queueType: 'classic' as const } : {}),
      ...(options.order === 'lane' ? { order: options.order, laneOf } : {}),
      ...(failpoint === undefined ? {} : { connect: connectWith(failpoint, die) }),
    }),
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
  start: () => Promise.all(options.queues.map(start)),
  end: () => pool.end(),
})
