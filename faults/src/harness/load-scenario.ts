import { check } from '../evidence/check.ts'
import type { Evidence, Violation } from '../evidence/evidence.ts'
import { figuresOf, withStories } from '../report/report.ts'
import type { Subject } from './play.ts'
import type { Mutant } from './mutant.ts'
import {
  type ByScale,
  type Result,
  type Scale,
  type Scenario,
  type Session,
  textOf,
} from './scenario.ts'
import type { Server } from './server.ts'
import { drain } from './wait-until-quiet.ts'
import type { World } from './world.ts'

/** A scenario that sends messages through a server and breaks it, its consumers or the network. */
export interface LoadScenario<World> {
  readonly name: string
  /** The server it breaks, as named in `dev/services`. */
  readonly service: string
  /** The server it breaks with `--smoke`. Default: `service`. */
  readonly smokeService?: string
  readonly story: string
  /** Number of messages in each form. Without `smoke`, it is not part of that form. */
  readonly messages: ByScale<number>
  /** Breaks things under load and repairs them. The steps after that are the same for all scenarios. */
  play(world: World): Promise<void>
  readonly isOnlyFull?: boolean
  /** Returns additional figures for the result line. */
  summarize?(evidence: Evidence): string
  /** Checks that the general rules do not contain. */
  check?(evidence: Evidence, world: World): readonly Violation[]
}

/** Returns the server that a scenario breaks in this form. */
export const serviceOf = <S extends LoadScenario<never>>(
  { service, smokeService = service }: S,
  scale: Scale,
): S['service'] => (scale === 'smoke' ? smokeService : service)

/** Returns a server with its scenarios as a subject. */
export function subjectOn<S extends LoadScenario<never>>(
  name: string,
  loads: readonly S[],
  mutants: readonly Mutant[],
  play: (scenario: S, session: Session) => Promise<Result>,
): Subject {
  const hunted = loads.filter((one) =>
    mutants.some(([, scenario]) => one.name.startsWith(scenario)),
  )
  const formOf = ({ messages }: S) => (messages.smoke === undefined ? 'quick' : 'smoke')
  return {
    name,
    mutants,
    // Effects are in PostgreSQL for every source of messages.
    services: ['postgres', ...hunted.map((one) => serviceOf(one, formOf(one)))],
    scenarios: loads.map((load) => scenarioOf(load, play)),
  }
}

function scenarioOf<S extends LoadScenario<never>>(
  load: S,
  play: (scenario: S, session: Session) => Promise<Result>,
): Scenario {
  const { name, story, isOnlyFull = false, messages } = load
  return {
    ...{ name, story, isOnlyFull, isInSmoke: messages.smoke !== undefined },
    // The published figures come from a machine that plays one scenario at a time.
    lane: (scale) => (scale === 'full' ? 'all' : serviceOf(load, scale)),
    play: (session) => play(load, session),
  }
}

export interface Run<W extends World> {
  readonly scenario: LoadScenario<W>
  readonly world: W
  readonly server: Server<W>
}

/** Plays a scenario, waits until all messages have settled, collects the evidence and judges it. */
export async function playLoad<W extends World>(run: Run<W>): Promise<Result> {
  const { scenario, world, server } = run
  const troubles = await playAndDrain(run)
  const evidence = await server.collect(world)
  const { figures: counts, violations } = check(evidence)
  const special = scenario.check?.(evidence, world) ?? []
  const broken = [...troubles, ...violations, ...neverSent(evidence), ...special]
  const summary = scenario.summarize?.(evidence)
  if (broken.length === 0) await server.forget(world)
  return {
    events: counts.attempted,
    figures: [...figuresOf(counts), ...(summary === undefined ? [] : [summary])],
    broken: withStories(broken, evidence.entries, evidence.found),
    counts,
  }
}

/** Returns the kinds of messages that the server never accepted: then the run proves nothing about them. */
function neverSent({ entries }: Evidence): readonly Violation[] {
  const kinds = new Map<string, string>()
  const accepted = new Set<string>()
  for (const entry of entries) {
    if (entry.what === 'attempted') kinds.set(entry.id, entry.kind)
    if (entry.what === 'acknowledged') accepted.add(kinds.get(entry.id) ?? '')
  }
  return [...new Set(kinds.values())]
    .filter((kind) => !accepted.has(kind))
    .map((kind) => ({ rule: 'scenario', text: `no message of the kind ${kind} was accepted` }))
}

async function playAndDrain<W extends World>(run: Run<W>): Promise<readonly Violation[]> {
  const { scenario, world, server } = run
  const progress = setInterval(() => void tellProgress(run), PROGRESS_MS)
  // An interrupted run must not leave a broken server behind.
  const onSignal = () => void world.end().finally(() => process.exit(1))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await scenario.play(world)
    await drain(world, server)
    return []
  } catch (error) {
    return [{ rule: 'scenario', text: textOf(error) }]
  } finally {
    clearInterval(progress)
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    await world.end()
  }
}

const PROGRESS_MS = 10_000

async function tellProgress<W extends World>({ world, server }: Run<W>): Promise<void> {
  const accepted = Object.values(world.expected).reduce((sum, count) => sum + count, 0)
  // The database itself may be broken at this time.
  const effects = await server.countEffects(world).catch(() => 'an unknown number')
  world.say(`${accepted} accepted, ${effects} took effect`)
}
