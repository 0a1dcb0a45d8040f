/** A consumer process: `consume` on the transport under test, with a real effect and a history of its own. */
import { rabbitmq } from '@redrive/rabbitmq'
import { type Consumer, consume } from '@redrive/runtime'
import { dieAt, live, RULES } from '../consumer.ts'
import { countRun, inboxOf, openDatabase } from '../effects.ts'
import { handlerOf } from '../handler.ts'
import { openHistory } from '../history.ts'
import type { RabbitConsumerOptions } from './consumer-options.ts'
import { connectWith } from './failpoints.ts'

const options = JSON.parse(process.argv[2] ?? '') as RabbitConsumerOptions
const { name, run, urls, policy, failpoint } = options
const history = openHistory(options.folder, name)
// Nobody stops the database here: what is committed need not wait for the disk.
const pool = openDatabase(options.databaseUrl, { isInHurry: true })
const die = (where: string) => dieAt(history, where)

const start = (queue: string): Promise<Consumer> =>
  consume(
    rabbitmq({
      url: urls,
      queue,
      ...(options.topology === undefined ? {} : { topology: options.topology }),
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
