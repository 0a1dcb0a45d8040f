import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Rule } from './evidence.ts'
import type { Choice } from './play.ts'
import type { Scale } from './scenario.ts'
import { ROOT } from './services.ts'
import { UsageError } from './usage.ts'

/** What a drill found: what is wrong, and what is worth telling. */
export interface DrillResult {
  readonly events: number
  readonly told: readonly string[]
  readonly broken: readonly Broken[]
}

/** A promise that was not kept. */
export interface Broken {
  readonly rule: Rule
  readonly text: string
}

export interface DrillWorld {
  readonly scale: Scale
  /** Whether the drill ends with the first rule that is broken. */
  readonly stopAtFirst: boolean
  /** A folder of its own, gone afterwards when all went well. */
  readonly folder: string
  readonly say: (text: string) => void
}

/** Something that goes wrong, played on real servers, files and processes, with a judgement of its own. */
export interface Drill {
  readonly name: string
  readonly story: string
  /** Whether it is part of `--smoke`. Default false. */
  readonly isInSmoke?: boolean
  play(world: DrillWorld): Promise<DrillResult>
}

/** A broken promise for each that holds. */
export const brokenIf = (
  ...rules: readonly (readonly [isBroken: boolean, rule: Rule, text: string])[]
): readonly Broken[] =>
  rules.flatMap(([isBroken, rule, text]) => (isBroken ? [{ rule, text }] : []))

/** Returns the drills of this form whose names begin like this; throws with the names that exist. */
export function chosenOf<D extends Drill>(
  drills: readonly D[],
  { only = '', scale }: Choice,
): readonly D[] {
  const offered = scale === 'smoke' ? drills.filter(({ isInSmoke }) => isInSmoke) : drills
  const chosen = offered.filter(({ name }) => name.startsWith(only))
  if (chosen.length > 0) return chosen
  const form = scale === 'smoke' ? ' with --smoke' : ''
  const names = offered.map(({ name }) => name).join('\n')
  throw new UsageError(`There is no drill "${only}"${form}. There is:\n${names}`)
}

/** One after the other. */
export async function playInTurn(
  subject: string,
  drills: readonly Drill[],
  choice: Choice,
): Promise<readonly DrillResult[]> {
  const played: DrillResult[] = []
  for (const drill of drills) played.push(await playDrill(subject, drill, choice))
  return played
}

/** The line at the end; true when no promise was broken. */
export function judged(
  subject: string,
  played: readonly DrillResult[],
  print: Choice['print'],
): boolean {
  const failed = played.filter(({ broken }) => broken.length > 0).length
  const events = played.reduce((sum, one) => sum + one.events, 0)
  const figure = `${failed} of ${played.length} drills failed, ${events} events, goal 0`
  print(`${failed === 0 ? 'PASS' : 'SHORT'} faults ${subject} ${figure}`)
  return failed === 0
}

/** A drill that could not be played to its end has failed; the others are still played. */
function notPlayed(error: unknown): DrillResult {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { events: 0, told: ['not played to its end'], broken: [{ rule: 'scenario', text }] }
}

async function playDrill(
  subject: string,
  drill: Drill,
  { scale, stopAtFirst, print }: Choice,
): Promise<DrillResult> {
  const folder = join(ROOT, '.reports/faults', `${subject}-${drill.name}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  print(`  ${drill.name}: ${drill.story}`)
  const startedAt = performance.now()
  const say = (text: string) => print(`  ${drill.name}: ${text}`)
  const result = await drill.play({ scale, stopAtFirst, folder, say }).catch(notPlayed)
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const isGood = result.broken.length === 0
  print(`${isGood ? 'ok' : 'FAIL'} ${drill.name}: ${result.told.join(', ')}, ${seconds} s in all`)
  for (const [rule, broken] of Map.groupBy(result.broken, (one) => one.rule)) {
    print(`  ${broken.length} × ${rule}\n${broken.map(({ text }) => `    ${text}`).join('\n')}`)
  }
  if (isGood) await rm(folder, { recursive: true, force: true })
  else print(`  what there was: ${folder}`)
  return result
}
