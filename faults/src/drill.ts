import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Rule } from './evidence.ts'
import type { Choice } from './play.ts'
import type { Scale } from './scenario.ts'
import { ROOT } from './services.ts'

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
  /** A folder of its own, gone afterwards when all went well. */
  readonly folder: string
  readonly say: (text: string) => void
}

/** Something that goes wrong, played on real servers, files and processes, with a judgement of its own. */
export interface Drill {
  readonly name: string
  readonly story: string
  play(world: DrillWorld): Promise<DrillResult>
}

/** A broken promise for each that holds. */
export const brokenIf = (
  ...rules: readonly (readonly [isBroken: boolean, rule: Rule, text: string])[]
): readonly Broken[] =>
  rules.flatMap(([isBroken, rule, text]) => (isBroken ? [{ rule, text }] : []))

/** Those whose names begin like this; undefined, and said so, when there are none. */
export function chosenOf<D extends Drill>(
  drills: readonly D[],
  { only = '', print }: Choice,
): readonly D[] | undefined {
  const chosen = drills.filter(({ name }) => name.startsWith(only))
  if (chosen.length > 0) return chosen
  print(`There is no drill '${only}'. There is:\n${drills.map(({ name }) => name).join('\n')}`)
  return undefined
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

async function playDrill(
  subject: string,
  drill: Drill,
  { scale, print }: Choice,
): Promise<DrillResult> {
  const folder = join(ROOT, '.reports/faults', `${subject}-${drill.name}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  print(`  ${drill.name}: ${drill.story}`)
  const startedAt = performance.now()
  const result = await drill.play({
    scale,
    folder,
    say: (text) => print(`  ${drill.name}: ${text}`),
  })
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const isGood = result.broken.length === 0
  print(`${isGood ? 'PASS' : 'FAIL'} ${drill.name}: ${result.told.join(', ')}, ${seconds} s in all`)
  for (const [rule, broken] of Map.groupBy(result.broken, (one) => one.rule)) {
    print(`  ${broken.length} × ${rule}\n${broken.map(({ text }) => `    ${text}`).join('\n')}`)
  }
  if (isGood) await rm(folder, { recursive: true, force: true })
  else print(`  what there was: ${folder}`)
  return result
}
