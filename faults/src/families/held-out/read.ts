import { readdirSync, readFileSync } from 'node:fs'
import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import { DataError, type WrittenCause, type WrittenFailure, type WrittenFamily } from './family.ts'
import { fillerOf, unescaped } from './fill.ts'

const FOLDER = new URL('./data/', import.meta.url)

/** The lines of one family: values by key, in the order of the file, and the rows. */
interface Block {
  readonly name: string
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly rows: readonly (readonly string[])[]
}

const KEYS: readonly string[] = [
  ...['alike', 'class', 'type', 'code', 'numeric-code', 'handler', 'event', 'reported', 'message'],
  ...['field', 'cause-type', 'cause-code', 'cause', 'stack'],
]

/** Returns all families of the data files, in the order of file names. */
export function readHeldOut(): readonly WrittenFamily[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'))
  return files.sort().flatMap((name) => parseFamilies(readFileSync(new URL(name, FOLDER), 'utf8')))
}

/** Parses one data file. Throws a `DataError` for a mistake in it. */
export function parseFamilies(text: string): readonly WrittenFamily[] {
  const [, ...parts] = `\n${text}`.split('\n## ')
  return parts.map((part) => familyOf(blockOf(part)))
}

function blockOf(part: string): Block {
  const [name = '', ...lines] = part.split('\n').filter((line) => line !== '')
  const values = new Map<string, string[]>()
  const rows: (readonly string[])[] = []
  for (const line of lines) {
    if (line.startsWith('- ')) rows.push(line.slice(2).split(' | '))
    else addTo(values, name, line)
  }
  return { name, values, rows }
}

function addTo(values: Map<string, string[]>, name: string, line: string): void {
  const end = line.indexOf(': ')
  const key = line.slice(0, end)
  if (!KEYS.includes(key)) throw new DataError(`${name}: "${line}" has no known key.`)
  values.set(key, [...(values.get(key) ?? []), line.slice(end + 2)])
}

function familyOf(block: Block): WrittenFamily {
  const failures = block.rows.map((row, index) => failureOf(block, row, index))
  return { name: block.name, alike: block.values.get('alike')?.[0], failures }
}

function failureOf(block: Block, row: readonly string[], index: number): WrittenFailure {
  const used = new Set<number>()
  const filled = fillerOf({ family: block.name, index }, row, used)
  const all = (key: string) => (block.values.get(key) ?? []).map((text) => unescaped(filled(text)))
  const optional = (key: string) => all(key)[0]
  const required = (key: string) => optional(key) ?? missing(block.name, key)
  const frames = all('stack').map((frame) => (frame.startsWith('at ') ? `    ${frame}` : frame))
  const failure: WrittenFailure = {
    class: classOf(block.name, required('class')),
    type: required('type'),
    code: optional('code') ?? numberOf(optional('numeric-code')),
    message: required('message'),
    stack: frames.length === 0 ? undefined : frames.join('\n'),
    cause: causeOf(optional),
    fields: Object.fromEntries(all('field').map((field) => fieldOf(block.name, field))),
    handler: required('handler'),
    event: required('event'),
    isReported: optional('reported') === 'yes',
  }
  if (used.size < row.length) throw new DataError(`${block.name}: a row has values without a slot.`)
  return failure
}

function causeOf(optional: (key: string) => string | undefined): WrittenCause | undefined {
  const message = optional('cause')
  if (message === undefined) return undefined
  return { type: optional('cause-type') ?? 'Error', code: optional('cause-code'), message }
}

function fieldOf(name: string, field: string): readonly [string, string | number] {
  const end = field.indexOf(' = ')
  if (end < 0) throw new DataError(`${name}: the field "${field}" has no " = ".`)
  const value = field.slice(end + 3)
  return [field.slice(0, end), /^\d{1,15}$/.test(value) ? Number(value) : value]
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function classOf(name: string, text: string): FailureClass {
  const found = FAILURE_CLASSES.find((one) => one === text)
  return found ?? missing(name, `known class instead of "${text}"`)
}

function missing(name: string, what: string): never {
  throw new DataError(`${name}: there is no ${what}.`)
}
