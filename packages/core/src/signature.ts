import { STACK_MAX } from './classify/stack.ts'
import type { FailureClass } from './failure.ts'
import { ownFrame } from './frame.ts'
import { hash64 } from './hash.ts'
import { normaliseMessage } from './normalise.ts'
import { clip } from './text.ts'

/** Raise it whenever a rule of normalise.ts or frame.ts changes: groups of different versions must never be compared. */
const SIGNATURE_VERSION = 2

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

/** Stable fingerprint of a failure: `2-` (the version) and 16 hex digits. */
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
