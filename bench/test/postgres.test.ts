import { afterEach, describe, expect, it } from 'vitest'
import type { Candidate } from '../src/harness.ts'
import { BODY } from '../src/postgres/body.ts'
import { type Contender, type Fate, openAll, type Stage } from '../src/postgres/contender.ts'
import { graphileWorker } from '../src/postgres/graphile-worker.ts'
import { bareInbox, bareLoop } from '../src/postgres/handwritten.ts'
import { pgBoss } from '../src/postgres/pg-boss.ts'
import { FIXED, ONE_ATTEMPT, redrive } from '../src/postgres/redrive.ts'

/** Two and a half batches of the loop. */
const COUNT = 250

let opened: Candidate[] = []
afterEach(async () => {
  for (const candidate of opened.splice(0)) await candidate.close?.()
})

/**
 * Opens a candidate with messages in its table, without the wait for a quiet server that a sample
 * needs.
 */
async function filled(open: (stage: Stage) => Promise<Contender>, fate: Fate): Promise<Candidate> {
  let contender: Contender | undefined
  opened = await openAll(
    [{ name: 'it', open: async (stage) => (contender = await open(stage)) }],
    fate,
  )
  await contender?.fill(COUNT)
  return opened[0] as Candidate
}

describe('a candidate on PostgreSQL', () => {
  it.each([
    ['the loop', 'done', bareLoop],
    ['the loop', 'failed', bareLoop],
    ['redrive', 'done', redrive({ policy: FIXED })],
    ['redrive', 'failed', redrive({ policy: ONE_ATTEMPT })],
    ['hand-written with an inbox', 'done', bareInbox],
    ['redrive with an inbox', 'done', redrive({ policy: FIXED, inboxBatch: 1 })],
    ['redrive with a batched inbox', 'done', redrive({ policy: FIXED, inboxBatch: 50 })],
    ['graphile-worker', 'done', graphileWorker],
    ['graphile-worker', 'failed', graphileWorker],
    ['pg-boss', 'done', pgBoss],
    ['pg-boss', 'failed', pgBoss],
  ] as const)('%s leaves every message %s', async (_, fate, open) => {
    const candidate = await filled(open, fate)
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).resolves.toBeUndefined()
  })

  it('fails its check when it handled everything and wrote nothing', async () => {
    const forgetful = async (stage: Stage): Promise<Contender> => ({
      ...(await bareLoop(stage)),
      async start() {
        for (let handled = 0; handled < COUNT; handled += 1) await stage.handler()
      },
      stop: () => {},
    })
    const candidate = await filled(forgetful, 'done')
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).rejects.toThrow('0 of 250 rows are done instead of 250')
  })

  it('fails its check when a handler ran twice', async () => {
    const eager = async ({ handler, ...stage }: Stage): Promise<Contender> => {
      const twice = () => handler().then(handler)
      return bareLoop({ ...stage, handler: twice })
    }
    const candidate = await filled(eager, 'done')
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).rejects.toThrow('500 calls instead of 250')
  })
})

describe('a message', () => {
  it('has 1 KB', () => {
    expect(Buffer.byteLength(BODY)).toBe(1_024)
  })
})
