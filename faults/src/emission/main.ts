import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Choice } from '../play.ts'
import { ROOT } from '../services.ts'
import type { Drill, DrillResult } from './drill.ts'
import { jobs } from './jobs.ts'
import { kills } from './kills.ts'
import { outage } from './outage.ts'
import { rateLimit } from './rate-limit.ts'

const DRILLS: readonly Drill[] = [outage, kills, rateLimit, jobs]

/** Plays the drills one after the other; true when no promise was broken. */
export async function playEmission({ scale, only = '', print }: Choice): Promise<boolean> {
  const chosen = DRILLS.filter(({ name }) => name.startsWith(only))
  if (chosen.length === 0) {
    print(`There is no drill '${only}'. There is:\n${DRILLS.map(({ name }) => name).join('\n')}`)
    return false
  }
  const played: DrillResult[] = []
  for (const drill of chosen) played.push(await play(drill, scale, print))
  const failed = played.filter(({ broken }) => broken.length > 0).length
  const events = played.reduce((sum, one) => sum + one.events, 0)
  const figure = `${failed} of ${chosen.length} drills failed, ${events} events, goal 0`
  print(`${failed === 0 ? 'PASS' : 'SHORT'} faults emission ${figure}`)
  return failed === 0
}

async function play(
  drill: Drill,
  scale: Choice['scale'],
  print: Choice['print'],
): Promise<DrillResult> {
  const folder = join(ROOT, '.reports/faults', `emission-${drill.name}`)
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
