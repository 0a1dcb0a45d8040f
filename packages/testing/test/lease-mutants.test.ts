import { describe, expect, it } from 'vitest'
import { exerciseTransport, type RunnableTest } from '../src/index.ts'
import { CAPABILITIES } from './lease-transport/capabilities.ts'
import { KILLS } from './lease-transport/kills.ts'
import { MISTAKES, type Mistake } from './lease-transport/mistakes.ts'
import { leaseWorld } from './lease-transport/world.ts'

/** Plays the contract against a transport with this mistake. Returns the failures by scenario. */
async function failuresOf(mistake: Mistake): Promise<ReadonlyMap<string, string>> {
  const tests: { readonly name: string; readonly run: RunnableTest }[] = []
  exerciseTransport({
    runner: {
      describe: (_, define) => define(),
      it: (name, run) => void tests.push({ name, run }),
    },
    name: mistake,
    capabilities: CAPABILITIES,
    open: () => leaseWorld(mistake),
    restartBroker: (world) => world.restart(),
  })
  const failures = new Map<string, string>()
  for (const { name, run } of tests.filter((test) => !test.name.startsWith('stress'))) {
    const context = { skip: () => undefined }
    await run(context).catch((error: unknown) => failures.set(name, (error as Error).message))
  }
  return failures
}

describe('a lease-based transport with a mistake', () => {
  it.each(MISTAKES)('fails the contract, with the cause: %s', async (mistake) => {
    const { scenario, cause, also = [] } = KILLS[mistake]
    const failures = await failuresOf(mistake)
    expect(failures.get(scenario)).toMatch(cause)
    expect([...failures.keys()]).toEqual(expect.arrayContaining([...also]))
  })
})
