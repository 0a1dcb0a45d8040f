import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { check, type Evidence, type Violation } from '../check.ts'
import { countEffects, forgetRun, readEffects } from '../effects.ts'
import { readHistory } from '../history.ts'
import { explain, isGood, lineOf, type Result } from '../report.ts'
import { deleteRun, drainRun } from './broker.ts'
import { awaitHidden, drain } from './settle.ts'
import { type World, type WorldParts, worldOf } from './world.ts'

/** Plays a scenario, lets everything settle, collects the evidence and judges it. */
export async function playScenario(parts: WorldParts): Promise<Result> {
  const { scenario, print } = parts
  const world = worldOf(parts)
  const startedAt = performance.now()
  print(`  ${scenario.name}: ${scenario.story}`)
  const troubles = await playAndDrain(parts, world)
  const evidence = await collect(world)
  const verdict = check(evidence)
  const special = scenario.check?.(evidence, world) ?? []
  const result: Result = {
    ...verdict,
    violations: [...troubles, ...verdict.violations, ...special],
    scenario: scenario.name,
    seconds: (performance.now() - startedAt) / 1_000,
    folder: world.folder,
    told: scenario.tell?.(evidence) ?? '',
  }
  print(lineOf(result))
  if (isGood(result)) await cleanUp(parts, world)
  else print(explain(result, evidence.entries, evidence.found))
  return result
}

async function playAndDrain({ scenario }: WorldParts, world: World): Promise<readonly Violation[]> {
  const progress = setInterval(() => void tellProgress(world), PROGRESS_MS)
  // Whoever interrupts a run must not be left with a broken broker.
  const onSignal = () => void world.end().finally(() => process.exit(1))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await scenario.play(world)
    await drain(world)
    return []
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return [{ rule: 'scenario', text }]
  } finally {
    clearInterval(progress)
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    await world.end()
  }
}

const PROGRESS_MS = 10_000

async function tellProgress(world: World): Promise<void> {
  const accepted = Object.values(world.expected).reduce((sum, count) => sum + count, 0)
  const effects = await countEffects(world.pool, world.run)
  world.say(`${accepted} accepted, ${effects} took effect`)
}

async function collect(world: World): Promise<Evidence> {
  const { broker, run, folder, pool } = world
  const found = [...world.taken, ...(await drainRun(broker, run))]
  const isShort = found.length < world.expected.dlq + world.expected.quarantine
  const hasAll = !isShort && (await countEffects(pool, run)) >= world.expected.effect
  if (!hasAll) {
    await awaitHidden(world, async () => {
      found.push(...(await drainRun(broker, run)))
    })
  }
  const effects = await readEffects(pool, run)
  await deleteRun(broker, run)
  return { entries: readHistory(folder), found, effects }
}

/** The history of what went well is kept until the next time: a full run writes hundreds of megabytes. */
async function cleanUp({ reports, scenario }: WorldParts, world: World): Promise<void> {
  await forgetRun(world.pool, world.run)
  const last = join(reports, scenario.name)
  await rm(last, { recursive: true, force: true })
  await rename(world.folder, last)
}
