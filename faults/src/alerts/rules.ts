import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ByScale } from '../harness/scenario.ts'
import { ROOT } from '../harness/services.ts'

/**
 * By how much the time of the rules is shortened. 30: an alert that needs half an hour fires after one minute. A larger
 * factor would make windows shorter than the 15 s between two checks of a broker by the server, which are not scaled.
 */
export const FACTOR: ByScale<number> = { quick: 30, full: 10 }

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Returns the rules with all durations divided by the factor: `for`, windows, offsets and thresholds in seconds. */
export function scaledRules(rules: string, factor: number): string {
  return rules
    .replaceAll(
      /(\bfor: |\[|\boffset )(\d+)([smhd])\b/g,
      (_, before: string, count, unit: string) => {
        const seconds = (Number(count) * (UNIT_SECONDS[unit] ?? 1)) / factor
        return `${before}${Math.ceil(seconds)}s`
      },
    )
    .replaceAll(/(_seconds\)? [<>]=? )(\d+)/g, (_, before: string, seconds) => {
      return `${before}${Number(seconds) / factor}`
    })
}

/** Returns the rules of this tree, in the time of the drill. */
export const drillRules = (factor: number): string =>
  scaledRules(readFileSync(join(ROOT, 'ops/prometheus/redrive.rules.yaml'), 'utf8'), factor)

/** Returns the names of the sections of the runbooks, as in their links. */
export function runbooks(): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, 'docs/runbooks.md'), 'utf8')
  return new Set([...text.matchAll(/^## (\w+)$/gm)].map(([, name = '']) => name.toLowerCase()))
}
