import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { check } from './check.ts'
import type { Violation } from './evidence.ts'
import { explain, isGood, lineOf, type Result } from './report.ts'
import type { Scenario } from './scenario.ts'
import type { Server } from './server.ts'
import { drain } from './settle.ts'
import type { Session, World } from './world.ts'

export interface Run<W extends World> {
  readonly scenario: Scenario<W>
  readonly world: W
  readonly server: Server<W>
  readonly session: Session
}

/** Plays a scenario, lets everything settle, collects the evidence and judges it. */
export async function playScenario<W extends World>(run: Run<W>): Promise<Result> {
  const { scenario, world, server, session } = run
  const startedAt = performance.now()
  session.print(`  ${scenario.name}: ${scenario.story}`)
  const troubles = await playAndDrain(run)
  const evidence = await server.collect(world)
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
  session.print(lineOf(result))
  if (isGood(result)) await cleanUp(run)
  else session.print(explain(result, evidence.entries, evidence.found))
  return result
}

async function playAndDrain<W extends World>(run: Run<W>): Promise<readonly Violation[]> {
  const { scenario, world, server } = run
  const progress = setInterval(() => void tellProgress(run), PROGRESS_MS)
  // Whoever interrupts a run must not be left with a broken server.
  const onSignal = () => void world.end().finally(() => process.exit(1))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await scenario.play(world)
    await drain(world, server)
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

async function tellProgress<W extends World>({ world, server }: Run<W>): Promise<void> {
  const accepted = Object.values(world.expected).reduce((sum, count) => sum + count, 0)
  // The database itself may be what is broken at the moment.
  const effects = await server.countEffects(world).catch(() => 'nobody knows how many')
  world.say(`${accepted} accepted, ${effects} took effect`)
}

/** The history of what went well is kept until the next time: a full run writes hundreds of megabytes. */
async function cleanUp<W extends World>({
  scenario,
  world,
  server,
  session,
}: Run<W>): Promise<void> {
  await server.forget(world)
  const last = join(session.reports, scenario.name)
  await rm(last, { recursive: true, force: true })
  await rename(world.folder, last)
}
