import { STACK_MAX } from './classify/stack.ts'
import type { FailureClass } from './failure.ts'
import { ownFrame } from './frame.ts'
import { hash64 } from './hash.ts'
import { remembering } from './memo.ts'
import { normaliseMessage } from './normalise.ts'
import { clip } from './text.ts'

/** Increase it when a rule of normalise.ts, grouping or frame.ts changes: groups of different versions must never be compared. */
const SIGNATURE_VERSION = 3

export interface SignatureInput {
  readonly class: FailureClass
  readonly type: string
  readonly code: string | undefined
  readonly message: string
  readonly stack: string | undefined
  readonly handler: string
  /** Values of the error's properties that name its kind. Default: none. */
  readonly kinds?: readonly string[]
}

/** The parts that similar failures share. They explain why failures are in one group. */
export interface SignatureFields {
  readonly version: number
  readonly class: FailureClass
  readonly type: string
  readonly code: string | undefined
  /** The message with its ids, numbers and quoted values replaced. */
  readonly message: string
  /** The first frame of the user's own code: function and file, no line. Set only for unknown failures. */
  readonly frame: string | undefined
  readonly handler: string
  /** Values of the error's properties that name its kind, normalised as the message is. */
  readonly kinds: readonly string[]
}

/** Returns the stable fingerprint of a failure: `3-` (the version) and 16 hex digits. */
export function signatureOf(input: SignatureInput): string {
  const parts = signatureParts(input)
  const { version, class: kind, type, code, message, frame, handler, kinds } = parts
  // JSON keeps the parts separate, whatever characters they contain.
  return `${version}-${digest(JSON.stringify([kind, type, code, message, frame, handler, kinds]))}`
}

export function signatureParts(input: SignatureInput): SignatureFields {
  const frame = input.stack === undefined ? undefined : ownFrame(clip(input.stack, STACK_MAX))
  // The words of the message must identify the failure when nothing else does.
  const isCoarse = frame !== undefined || input.code !== undefined || !isGeneral(input.type)
  return {
    version: SIGNATURE_VERSION,
    class: input.class,
    type: input.type,
    code: input.code,
    message: (isCoarse ? keywords : wording)(input.message),
    frame,
    handler: input.handler,
    kinds: [...new Set((input.kinds ?? []).map(normaliseKind))],
  }
}

/** In a storm, most failures have the same text. Replacing its values takes longer than the other steps. */
const keywords = remembering((message) => normaliseMessage(message, true))
const wording = remembering((message) => normaliseMessage(message))
const digest = remembering(hash64)

/** A name without digits and a short number are codes. Other values may contain an id. */
function normaliseKind(kind: string): string {
  return /^\w+: (?:[A-Za-z_]{1,60}|-?\d{1,6})$/.test(kind) ? kind : normaliseMessage(kind, true)
}

/** Types that say nothing about the failure. */
const GENERAL_TYPES: ReadonlySet<string> = new Set([
  '',
  'Error',
  'error',
  'Exception',
  'object',
  'string',
])

const isGeneral = (type: string): boolean => GENERAL_TYPES.has(type)
