import type { WrittenFamily } from './family.ts'
import { groupFamilies } from './group.ts'
import {
  pairFigures,
  worstOf,
  type FamilyPairs,
  type GroupedFamily,
  type PairCount,
} from './pairs.ts'

const WORST = 20
/** Longer examples make the table hard to read. */
const EXAMPLE_MAX = 90

/** Returns the figures of the rules of today as Markdown. Families with equally many wrong pairs are in the order of names. */
export function reportOf(families: readonly WrittenFamily[]): string {
  const grouped = groupFamilies(families)
  const figures = pairFigures(grouped)
  const alone = pairFigures(groupFamilies(families, 'one-handler'))
  const varied = new Set(families.filter(hasSeveralTexts).map(({ name }) => name))
  const ofVaried = pairFigures(grouped.filter(({ name }) => varied.has(name)))
  const rows = [
    ['split, all families', shareOf(figures.split)],
    [`split, the ${varied.size} families with more than one text`, shareOf(ofVaried.split)],
    ['merged, all families', shareOf(figures.merged)],
    ['merged, families that look alike', shareOf(figures.mergedAlike)],
    ['merged, all families in one handler', shareOf(alone.merged)],
  ]
  return [
    sizeOf(families),
    table(
      ['pairs', 'number', 'share'],
      rows.map(([name = '', share = '']) => `${name} | ${share}`),
    ),
    spreadOf(figures.families),
    `The ${WORST} families with the most wrong pairs:`,
    table(
      ['family', 'groups', 'split pairs', 'merged pairs', 'example'],
      worstOf(figures, WORST).map((family) => worstRow(family, families, grouped)),
    ),
  ].join('\n\n')
}

function sizeOf(families: readonly WrittenFamily[]): string {
  const messages = families.reduce((sum, { failures }) => sum + failures.length, 0)
  const alike = families.filter(({ alike: set }) => set !== undefined)
  const sets = new Set(alike.map(({ alike: set }) => set)).size
  const stacks = families.filter(({ failures }) => failures[0]?.stack !== undefined).length
  return (
    `${families.length} families with ${messages} messages. ${alike.length} families are in ${sets} ` +
    `sets that look alike. ${stacks} families have a stack.`
  )
}

function spreadOf(families: readonly FamilyPairs[]): string {
  const whole = families.filter(({ split, merged }) => split.pairs + merged === 0)
  const apart = families.filter(({ split }) => split.pairs === split.of)
  return (
    `${whole.length} families are one group each, without another family. ${apart.length} families have a ` +
    `separate group for each message: ${apart.map(({ name }) => name).join(', ')}.`
  )
}

function hasSeveralTexts({ failures }: WrittenFamily): boolean {
  const texts = failures.map(({ type, code, message, cause }) => {
    return JSON.stringify([type, code, message, cause])
  })
  return new Set(texts).size > 1
}

function shareOf({ pairs, of }: PairCount): string {
  const share = of === 0 ? 0 : (100 * pairs) / of
  return `${pairs} of ${of} | ${share.toFixed(share < 1 ? 3 : 2)} %`
}

function worstRow(
  { name, groups, split, merged, mergedWith }: FamilyPairs,
  families: readonly WrittenFamily[],
  grouped: readonly GroupedFamily[],
): string {
  const at = families.findIndex((family) => family.name === name)
  const own = grouped[at]?.groups ?? []
  const other = own.findIndex((group) => group !== own[0])
  const texts = [0, ...(other < 0 ? [] : [other])].map((index) => {
    return exampleOf(families[at]?.failures[index]?.message ?? '')
  })
  const rivals = merged === 0 ? '0' : `${merged} (${mergedWith.join(', ')})`
  return [name, groups, `${split.pairs} of ${split.of}`, rivals, texts.join('<br>')].join(' | ')
}

/** Returns the beginning of a text, and its end when it is long: the reason is often there. */
function exampleOf(message: string): string {
  const line = message.replaceAll(/\s+/g, ' ').trim()
  const half = EXAMPLE_MAX / 2
  const short = line.length <= EXAMPLE_MAX ? line : `${line.slice(0, half)} … ${line.slice(-half)}`
  return `\`${short.replaceAll('|', '/').replaceAll('`', "'")}\``
}

function table(heads: readonly string[], rows: readonly string[]): string {
  const rule = heads.map(() => '---').join(' | ')
  return [heads.join(' | '), rule, ...rows].map((row) => `| ${row} |`).join('\n')
}
