import { RedriveError } from '@redrive/core'

export const isCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

export const closedError = (): RedriveError =>
  new RedriveError('DLQ_CLOSED', 'The file store is closed: open another one with fileStore().')

/** What the disk says, as what to do about it. */
export function diskError(directory: string, cause: unknown): RedriveError {
  if (isCode(cause, 'ENOSPC', 'EDQUOT', 'EFBIG')) {
    const message = `No room for dead letters in ${directory}: free some space, call cleanup(), or give the store another directory. Nothing that was saved before is lost.`
    return new RedriveError('DLQ_FULL', message, { cause })
  }
  const message = `Dead letters cannot be kept in ${directory} (${String(cause)}): check that it is a folder, that the disk is healthy and that this process may read and write there.`
  return new RedriveError('UNREACHABLE', message, { cause })
}
