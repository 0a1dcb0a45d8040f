import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { explain, lineOf, rowsOf, tableOf } from '../report/report.ts'
import { UsageError } from '../usage.ts'
import type { Prey } from './mutant.ts'
import {
  isGood,
  isPartOf,
  notPlayed,
  type Played,
  type Scenario,
  type Session,
} from './scenario.ts'
import { ROOT } from './services.ts'

/** A system that can be broken, with its name on the command line. */
export interface Subject extends Prey {
  /** Titles of the table of its rows. Default: the table of counts. */
  readonly columns?: readonly string[]
  /** Called after the last scenario. */
  end?(isGood: boolean): Promise<unknown>
}

export interface Choice extends Omit<Session, 'folder' | 'say'> {
  /** Plays only the scenarios whose names start with this text. */
  readonly only: string | undefined
  readonly print: (text: string) => void
}

/** Plays the chosen scenarios. Returns true when no promise was broken. */
export async function playSubject(subject: Subject, choice: Choice): Promise<boolean> {
  const { print, scale } = choice
  const chosen = chosenOf(subject.scenarios, choice)
  const lanes = Map.groupBy(chosen, (one) => one.lane?.(scale))
  const alone = lanes.get(undefined) ?? []
  lanes.delete(undefined)
  const inTurn = async (scenarios: readonly Scenario[]) => {
    const played: Played[] = []
    for (const one of scenarios) played.push(await playOne(subject.name, one, choice))
    return played
  }
  const played = (await Promise.all([...lanes.values()].map(inTurn))).flat()
  played.push(...(await inTurn(alone)))
  const failed = played.filter((one) => !isGood(one)).length
  await subject.end?.(failed === 0)
  const inOrder = chosen.flatMap(({ name }) => played.filter((one) => one.scenario === name))
  const table = subject.columns === undefined ? tableOf(inOrder) : rowsOf(subject.columns, inOrder)
  if (table !== undefined) print(`\n${table}`)
  const events = played.reduce((sum, one) => sum + one.events, 0)
  const figure = `${failed} of ${played.length} scenarios failed, ${events} messages, goal 0`
  print(`${failed === 0 ? 'PASS' : 'SHORT'} faults ${subject.name} ${figure}`)
  return failed === 0
}

/** Returns the scenarios whose names start with `only`; throws with the existing names. */
function chosenOf(scenarios: readonly Scenario[], { only, scale }: Choice): readonly Scenario[] {
  // A named scenario is played in any form except `smoke`, because it may have no size for that
  // form.
  const isNamed = only !== undefined && scale !== 'smoke'
  const offered = isNamed ? scenarios : scenarios.filter((one) => isPartOf(one, scale))
  const chosen = offered.filter(({ name }) => name.startsWith(only ?? ''))
  if (chosen.length > 0) return chosen
  const form = scale === 'smoke' ? ' with --smoke' : ''
  const names = offered.map(({ name }) => name).join('\n')
  throw new UsageError(`No scenario starts with "${only}"${form}. Choose one of:\n${names}`)
}

async function playOne(
  subject: string,
  scenario: Scenario,
  { print, ...choice }: Choice,
): Promise<Played> {
  const { name, story } = scenario
  const folder = join(ROOT, '.reports/faults', `${subject}-${name}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const say = (text: string) => print(`  ${name}: ${text}`)
  say(story)
  const startedAt = performance.now()
  const result = await scenario.play({ ...choice, folder, say }).catch((error) => notPlayed(error))
  const seconds = (performance.now() - startedAt) / 1_000
  const played = { ...result, scenario: name, seconds, folder }
  print(lineOf(played))
  if (!isGood(played)) print(explain(played))
  return played
}
