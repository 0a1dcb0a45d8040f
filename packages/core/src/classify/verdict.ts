import type { FailureClass } from '../failure.ts'
import { clip } from '../text.ts'
import type { Ruling } from './codes.ts'
import type { Names } from './names.ts'
import { readString } from './read.ts'

/** The class of one error, without its causes. */
export interface Verdict {
  readonly class: FailureClass
  readonly code: string | undefined
  readonly timedOut: boolean
}

/** Returns the verdict on an error, or undefined when it is not of the detector's kind. */
export type Detector = (error: unknown, names: Names, now: number) => Verdict | undefined

/** Codes are identifiers. A longer text is not a code. */
export const CODE_MAX = 100

export function toVerdict(ruling: Ruling, code: string | undefined): Verdict {
  const timedOut = ruling === 'timeout'
  return { class: timedOut ? 'transient' : ruling, code, timedOut }
}

/** Returns the code of an error. Prisma names it `errorCode` when it cannot connect. */
export function codeOf(error: unknown): string | undefined {
  const code = readString(error, 'code') ?? readString(error, 'errorCode')
  return code === undefined || code === '' ? undefined : clip(code, CODE_MAX)
}
