import { STACK_MAX } from './classify/stack.ts'
import type { FailureClass } from './failure.ts'
import { ownFrame } from './frame.ts'
import { hash64 } from './hash.ts'
import { normaliseMessage } from './normalise.ts'
import { clip } from './text.ts'

/** Increase it when a rule of normalise.ts or frame.ts changes: groups of different versions must never be compared. */
const SIGNATURE_VERSION = 2

export interface SignatureInput {
  readonly class: FailureClass
  readonly type: string
  readonly code: string | undefined
  readonly message: string
  readonly stack: string | undefined
  readonly handler: string
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
}

/** Returns the stable fingerprint of a failure: `2-` (the version) and 16 hex digits. */
export function signatureOf(input: SignatureInput): string {
  const parts = signatureParts(input)
  const { version, class: kind, type, code, message, frame, handler } = parts
  // JSON keeps the parts separate, whatever characters they contain.
  return `${version}-${hash64(JSON.stringify([kind, type, code, message, frame, handler]))}`
}

export function signatureParts(input: SignatureInput): SignatureFields {
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
