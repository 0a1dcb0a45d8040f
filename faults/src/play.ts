import { isGood, type Result, tableOf } from './report.ts'
import { isPartOf, type Scale, type Scenario, serviceOf } from './scenario.ts'
import { ROOT } from './services.ts'
import { UsageError } from './usage.ts'
import type { Session } from './world.ts'

export interface Choice {
  readonly scale: Scale
  /** Only the scenarios whose names begin like this. */
  readonly only: string | undefined
  readonly messages: number | undefined
  /** Whether a scenario ends as soon as a rule is broken or nothing moves any more, as a hunt needs it. */
  readonly stopAtFirst: boolean
  readonly print: (text: string) => void
}

/** What can be broken, and how one scenario of it is played. */
export interface Subject<S extends Scenario<never>> {
  readonly name: string
  readonly scenarios: readonly S[]
  /** Before the first scenario; what it answers plays them one by one. */
  prepare(session: Session): Promise<Player<S>>
}

export interface Player<S> {
  play(scenario: S): Promise<Result>
  end(): Promise<unknown>
}

/** Plays the scenarios; true when no promise was broken. */
export async function playChosen<S extends Scenario<never>>(
  subject: Subject<S>,
  choice: Choice,
): Promise<boolean> {
  const { scale, only, print } = choice
  // A scenario that is named is played in any form but `smoke`, which it has no size for.
  const offered = subject.scenarios.filter((one) =>
    only === undefined || scale === 'smoke' ? isPartOf(one, scale) : true,
  )
  const chosen = offered.filter(({ name }) => name.startsWith(only ?? ''))
  if (chosen.length === 0) {
    const form = scale === 'smoke' ? ' with --smoke' : ''
    const names = offered.map(({ name }) => name).join('\n')
    throw new UsageError(`There is no scenario "${only}"${form}. There is:\n${names}`)
  }
  const results = await playAll(subject, chosen, { ...choice, reports: `${ROOT}.reports/faults` })
  print(`\n${tableOf(results)}`)
  const failed = results.filter((result) => !isGood(result)).length
  const attempted = results.reduce((sum, { figures }) => sum + figures.attempted, 0)
  const figure = `${failed} of ${results.length} scenarios failed, ${attempted} messages, goal 0`
  print(`${failed === 0 ? 'PASS' : 'SHORT'} faults ${subject.name} ${figure}`)
  return failed === 0
}

/**
 * On one server one after the other. Quickly, several servers are used side by side; the published
 * figures are those of a machine that does one thing at a time.
 */
async function playAll<S extends Scenario<never>>(
  subject: Subject<S>,
  scenarios: readonly S[],
  session: Session,
): Promise<readonly Result[]> {
  const player = await subject.prepare(session)
  const lanes =
    session.scale === 'full'
      ? [scenarios]
      : [...Map.groupBy(scenarios, (one) => serviceOf(one, session.scale)).values()]
  const played = await Promise.all(lanes.map((lane) => playInTurn(lane, player)))
  await player.end()
  const order = scenarios.map(({ name }) => name)
  return played.flat().sort((a, b) => order.indexOf(a.scenario) - order.indexOf(b.scenario))
}

async function playInTurn<S>(
  scenarios: readonly S[],
  player: Player<S>,
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const scenario of scenarios) results.push(await player.play(scenario))
  return results
}
