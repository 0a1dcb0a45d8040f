import { STACK_MAX } from './classify/stack.ts'
import { clip } from './text.ts'
import { MESSAGE_MAX } from './classify/text.ts'
import type { FailureClass } from './failure.ts'
import { hash64 } from './hash.ts'

/** Raise it whenever any rule below changes: groups of different versions must never be compared. */
const SIGNATURE_VERSION = 1

/** What is left when names and numbers are out; a tail beyond this is more often noise than meaning. */
const NORMALISED_MAX = 300

export interface SignatureInput {
  readonly class: FailureClass
  readonly type: string
  readonly code: string | undefined
  readonly message: string
  readonly stack: string | undefined
  readonly handler: string
}

/** What two failures must share to be alike; shown to answer "why are these one group?". */
export interface SignatureParts {
  readonly version: number
  readonly class: FailureClass
  readonly type: string
  readonly code: string | undefined
  /** The message with its ids, numbers and quoted values replaced. */
  readonly message: string
  /** The first frame of the user's own code: function and file, no line. Only of what is unknown otherwise. */
  readonly frame: string | undefined
  readonly handler: string
}

/** Stable fingerprint of a failure: `1-` (the version) and 16 hex digits. */
export function signatureOf(input: SignatureInput): string {
  const parts = signatureParts(input)
  const { version, class: kind, type, code, message, frame, handler } = parts
  // JSON keeps the borders between the parts, whatever characters they contain.
  return `${version}-${hash64(JSON.stringify([kind, type, code, message, frame, handler]))}`
}

export function signatureParts(input: SignatureInput): SignatureParts {
  return {
    version: SIGNATURE_VERSION,
    class: input.class,
    type: input.type,
    code: input.code,
    message: normaliseMessage(input.message),
    frame: input.stack === undefined ? undefined : ownFrame(clip(input.stack, STACK_MAX)),
    handler: input.handler,
  }
}

/**
 * In this order: a larger thing before what it is made of. Each starts only where its kind of word
 * starts, or is bounded, so that none can run back and forth over a hostile text.
 */
const PLACEHOLDERS: readonly Placeholder[] = [
  // V8 quotes the text it could not parse, with the quotes that are in it.
  [/".*"(?=(?:\.{3})? is not valid JSON)/s, '<str>', 'JSON'],
  // An apostrophe inside a word is not a quote.
  [/"[^"]*"|`[^`]*`|(?<!\w)'[^']*'(?!\w)/g, '<str>'],
  [/(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,255}/g, '<email>', '@'],
  [/(?<![a-z\d])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![a-z\d])/gi, '<uuid>', '-'],
  [
    /(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)/g,
    '<time>',
    '-',
  ],
  [/(?<![\w:])\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?(?![\w:])/g, '<time>', ':'],
  [/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?!\w|\.\d)/g, '<ip>', '.'],
  // The last group may be a port: Node prints `::1:5432`.
  [/(?<![\w:])(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,5}(?![\w:])/gi, '<ip>', ':'],
  [/(?<![a-z\d])(?:0x[0-9a-f]+|[0-9a-f]{8,})(?![a-z\d])/gi, '<n>'],
  // base64, JWTs, nanoids. A digit between letters tells them from `Order-Service-20260101`.
  [/(?<![\w+/=-])(?=[\w+/=-]*[a-z]\d+[a-z])[\w+/=-]{20,}/gi, '<token>'],
  // Ids such as `a1b2`, hex and plain numbers share one placeholder, since a random id can look
  // like any of them. `user42` and `30s` keep their letters: those are names and units.
  [/(?<![a-z\d])(?:[a-z]+\d+[a-z]|\d+[a-z]+\d)[a-z\d]*/gi, '<n>'],
  [/\d+/g, '<n>'],
  [/\s+/g, ' '],
]

/** What to replace, by what, and a text without which there is nothing to replace. */
type Placeholder = readonly [from: RegExp, to: string, needs?: string]

function normaliseMessage(message: string): string {
  let text = clip(message, MESSAGE_MAX)
  for (const [from, to, needs = ''] of PLACEHOLDERS) {
    if (text.includes(needs)) text = text.replace(from, to)
  }
  return clip(text.trim(), NORMALISED_MAX)
}

/** `charge payments.ts`: line, column and directory differ between builds and machines, so they are left out. */
function ownFrame(stack: string): string | undefined {
  for (const line of stack.split('\n')) {
    const frame = /^\s*at (?:async )?(.*)$/.exec(line)?.[1]
    if (frame === undefined) continue
    const { name, location } = parseFrame(frame)
    if (isOwn(location)) return `${name} ${baseName(location)}`
  }
  return undefined
}

/** V8 writes `name (location)`, or the location alone for a function without a name. */
function parseFrame(frame: string): { readonly name: string; readonly location: string } {
  const open = frame.endsWith(')') ? frame.indexOf(' (') : -1
  if (open === -1) return { name: '<anonymous>', location: frame }
  const name = frame.slice(0, open).replace(/ \[as .*$/, '')
  return { name, location: frame.slice(open + 2, -1) }
}

/** Without a directory it is no file: `<anonymous>`, `native`, `index 0` of a Promise.all. */
function isOwn(location: string): boolean {
  if (location.startsWith('node:') || /[\\/]node_modules[\\/]/.test(location)) return false
  return /[\\/]/.test(location)
}

function baseName(location: string): string {
  const file = location.slice(Math.max(location.lastIndexOf('/'), location.lastIndexOf('\\')) + 1)
  // Bundlers put a hash of the content into chunk names, and dev servers a query behind them.
  return file.replace(/[:?].*$/, '').replace(/-[A-Z0-9]{8}(?=\.)/, '-<hash>')
}
