import { RedriveError } from '@redrive/core'

export const isCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

export const closedError = (): RedriveError =>
  new RedriveError('DLQ_CLOSED', 'The file store is closed. Open another one with fileStore().')

/** Converts a disk error to an error with the fix. */
export function diskError(directory: string, cause: unknown): RedriveError {
  if (isCode(cause, 'ENOSPC', 'EDQUOT', 'EFBIG')) {
    const message = `No space for dead letters in "${directory}". Free some space, call cleanup(), or use another directory. Dead letters that were saved before are not lost.`
    return new RedriveError('DLQ_FULL', message, { cause })
  }
  const message = `Cannot store dead letters in "${directory}" (${String(cause)}). Check that it is a folder, that the disk works and that this process may read and write there.`
  return new RedriveError('UNREACHABLE', message, { cause })
}
