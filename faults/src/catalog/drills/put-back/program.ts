/** Puts the dead letters of a source back in a separate process, which can die in the middle. */
import { catalog } from '@redrive/catalog'
import { rabbitmqSource } from '@redrive/rabbitmq'
import { openDatabase } from '../../../harness/effects.ts'
import { ready } from '../../../harness/process.ts'
import type { Where } from '../../options.ts'

export interface PutBackProgram extends Where {
  /** The queue with the dead letters. */
  readonly deadLetters: string
  /** The process dies at this batch, before or after the broker has stored it. Default: it does not die. */
  readonly dies?: { readonly batch: number; readonly when: 'before' | 'after' }
}

const { amqpUrl, catalogUrl, queue, deadLetters, dies } = JSON.parse(
  process.argv[2] ?? '',
) as PutBackProgram
const pool = openDatabase(catalogUrl)
const source = rabbitmqSource({ url: amqpUrl, queue, deadLetterQueues: [deadLetters] })
const putBack = source.putBack.bind(source)
let batches = 0
const dieIf = (when: 'before' | 'after') => {
  if (dies?.batch === batches && dies.when === when) process.kill(process.pid, 'SIGKILL')
}
source.putBack = async (letters) => {
  batches += 1
  dieIf('before')
  await putBack(letters)
  dieIf('after')
}

ready()
await catalog({ pool }).putBack(source)
await source.close()
await pool.end()
process.exit(0)
