import { MASKED } from './values.ts'

/** A part of a line with one colour. */
export interface Token {
  readonly kind: 'key' | 'string' | 'number' | 'inexact' | 'word' | 'sign' | 'masked'
  readonly text: string
}

export interface JsonLine {
  readonly depth: number
  readonly tokens: readonly Token[]
}

/** A number as it is written in the body. A JavaScript number loses digits of large integers. */
class ExactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

interface ReviverContext {
  readonly source?: string
}

/** Parses JSON and keeps the digits of every number. Returns undefined if the text is not JSON. */
export function parseExact(text: string): { readonly value: unknown } | undefined {
  const revive = (_: string, value: unknown, context?: ReviverContext) =>
    typeof value === 'number' && context?.source !== undefined
      ? new ExactNumber(context.source)
      : value
  try {
    return { value: JSON.parse(text, revive as Parameters<typeof JSON.parse>[1]) as unknown }
  } catch (error) {
    // A RangeError: it is nested too deeply for the browser.
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined
    throw error
  }
}

/** 100 levels. Deeper values are left out. */
const DEPTH_MAX = 100

const sign = (text: string): Token => ({ kind: 'sign', text })

/** Returns a JSON value as lines. */
export function jsonLines(value: unknown): readonly JsonLine[] {
  const lines: JsonLine[] = []
  write(lines, value, 0, [], [])
  return lines
}

function write(
  lines: JsonLine[],
  value: unknown,
  depth: number,
  before: readonly Token[],
  after: readonly Token[],
): void {
  const entries = entriesOf(value)
  if (entries === undefined || entries.length === 0 || depth >= DEPTH_MAX) {
    const isCut = entries !== undefined && entries.length > 0
    lines.push({ depth, tokens: [...before, isCut ? sign('…') : scalar(value), ...after] })
    return
  }
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  lines.push({ depth, tokens: [...before, sign(open)] })
  for (const [index, [name, one]] of entries.entries()) {
    const label: readonly Token[] =
      name === undefined ? [] : [{ kind: 'key', text: JSON.stringify(name) }, sign(': ')]
    write(lines, one, depth + 1, label, index === entries.length - 1 ? [] : [sign(',')])
  }
  lines.push({ depth, tokens: [sign(close), ...after] })
}

function entriesOf(
  value: unknown,
): readonly (readonly [string | undefined, unknown])[] | undefined {
  if (Array.isArray(value)) return value.map((one: unknown) => [undefined, one] as const)
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return undefined
  return Object.entries(value)
}

function scalar(value: unknown): Token {
  if (value === MASKED) return { kind: 'masked', text: 'masked' }
  if (typeof value === 'string') return { kind: 'string', text: JSON.stringify(value) }
  if (value instanceof ExactNumber) return { kind: 'number', text: value.text }
  if (typeof value === 'number') {
    const isExact = Math.abs(value) <= Number.MAX_SAFE_INTEGER
    return { kind: isExact ? 'number' : 'inexact', text: String(value) }
  }
  return { kind: 'word', text: JSON.stringify(value) ?? 'null' }
}

/** Returns the number of masked values. */
export const maskedCount = (lines: readonly JsonLine[]): number =>
  lines.reduce((sum, { tokens }) => sum + tokens.filter(({ kind }) => kind === 'masked').length, 0)
