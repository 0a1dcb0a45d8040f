// The baseline, a program with the plain client: it reads in batches and sends one response per message.
import type { Redis } from 'ioredis'
import { type Contender, fillStream, GROUP, IN_FLIGHT, lookAt, type Stage } from './contender.ts'

const CONSUMER = 'bench'
/** 20 ms: a longer wait would delay the end of a sample. */
const BLOCK_MS = 20

/** Reads batches, calls the handler for all of a batch, and acknowledges each message. */
export async function handwritten({ name, client, handler }: Stage): Promise<Contender> {
  const deadLetters = `${name}:dlq`
  await client.xgroup('CREATE', name, GROUP, '0', 'MKSTREAM')
  // A read that waits blocks its connection.
  const reader = client.duplicate()
  let isStopped = true
  let running: Promise<void> = Promise.resolve()

  const handle = async ([id, fields]: Entry) => {
    try {
      await handler()
    } catch (error) {
      await handOff(client, { from: name, to: deadLetters, id, fields, error })
      return
    }
    await client.xack(name, GROUP, id)
  }
  const loop = async () => {
    while (!isStopped) {
      const reply = (await reader.callBuffer(
        'XREADGROUP',
        ...['GROUP', GROUP, CONSUMER, 'COUNT', IN_FLIGHT, 'BLOCK', BLOCK_MS],
        ...['STREAMS', name, '>'],
      )) as readonly [stream: Buffer, entries: readonly Entry[]] | null
      await Promise.all((reply?.[1] ?? []).map(handle))
    }
  }
  return {
    async fill(count) {
      await client.xtrim(name, 'MAXLEN', 0)
      await client.del(deadLetters)
      await fillStream(client, name, count)
    },
    start() {
      isStopped = false
      running = loop()
    },
    async stop() {
      isStopped = true
      await running
    },
    async close() {
      reader.disconnect()
      await client.del(name, deadLetters)
    },
    look: () => lookAt(client, name, deadLetters),
  }
}

type Entry = readonly [id: Buffer, fields: readonly Buffer[]]

interface DeadLetter {
  readonly from: string
  readonly to: string
  readonly id: Buffer
  readonly fields: readonly Buffer[]
  readonly error: unknown
}

/** Stores a copy with the reason and acknowledges the original, in one transaction. */
async function handOff(client: Redis, { from, to, id, fields, error }: DeadLetter): Promise<void> {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  await client
    .multi()
    .xadd(to, '*', ...fields, 'reason', reason)
    .xack(from, GROUP, id)
    .exec()
}
