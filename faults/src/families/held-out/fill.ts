import { DataError } from './family.ts'

/** Where a sample comes from: its family and its place in it, from 0. */
export interface Origin {
  readonly family: string
  readonly index: number
}

/** Two releases of one service: other folders and other line numbers. */
const ROOTS = ['/app', '/srv/releases/20261117-2'] as const

const SKUS = ['TSH-BLK-XL', 'RX-100.220/B', '4006381333931', 'sofa-3', 'KÜHLER-9', 'P0001', 'kx9']
const TITLES = ['T-shirt, black', 'Radiator', 'Pencil HB', 'Sofa "Oslo"', 'Kühler', 'Mug', 'Key']
const PRICES = ['19.99', '1299', '0.45', '74.5', '310.00', '5', '12.1']

/** Returns texts with the values of one row in their slots. `usedSlots` collects the numbers of these slots. */
export function fillerOf(origin: Origin, values: readonly string[], usedSlots: Set<number>) {
  const release = origin.index % 3 === 2 ? 1 : 0
  let lines = 0
  const valueOf = (slot: string): string => {
    if (slot === 'root') return ROOTS[release]
    if (slot === 'line') return String(lineOf(origin.family, lines++, release))
    const value = values[Number(slot) - 1]
    if (value === undefined) throw new DataError(`${origin.family}: a row has no value {${slot}}.`)
    usedSlots.add(Number(slot))
    return value
  }
  return (text: string): string =>
    text
      .replaceAll(/\{(\d+|root|line)\}/g, (_, slot: string) => valueOf(slot))
      .replaceAll(/\{lines:(\d+)\}/g, (_, count: string) => orderLines(Number(count), origin.index))
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  s: ' ',
  e: '',
  '\\': '\\',
}

/** Replaces the escapes of the data files: \n, \r, \t, \s (a space), \e (nothing) and \\. */
export function unescaped(text: string): string {
  return text.replaceAll(/\\([nrtse\\])/g, (_, letter: string) => ESCAPES[letter] ?? letter)
}

/** Returns a line number that is the same in every run, and another one in the next release. */
function lineOf(family: string, occurrence: number, release: number): number {
  const hash = hashOf(`${family}/${occurrence}`)
  return 8 + (hash % 390) + release * (1 + (hash % 7))
}

function hashOf(text: string): number {
  let hash = 7
  for (const letter of text) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003
  return hash
}

/** Returns the JSON of an order's lines: a long payload in front of the reason. */
function orderLines(count: number, offset: number): string {
  const at = (list: readonly string[], place: number) => list[place % list.length]
  const lines = Array.from({ length: count }, (_, place) => ({
    sku: at(SKUS, place + offset),
    title: at(TITLES, place + offset),
    quantity: 1 + ((place * 7 + offset) % 12),
    price: at(PRICES, place + offset * 2),
  }))
  return JSON.stringify(lines)
}
