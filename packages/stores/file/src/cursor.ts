import type { Position } from './walk.ts'

export const writeCursor = ({ savedAt, segment, offset }: Position): string =>
  Buffer.from(JSON.stringify([savedAt, segment, offset])).toString('base64url')

export function readCursor(after: string): Position {
  const [savedAt, segment, offset] = readList(after)
  if (
    typeof savedAt !== 'number' ||
    typeof segment !== 'string' ||
    typeof offset !== 'number' ||
    !Number.isSafeInteger(offset)
  ) {
    throw notACursor(after)
  }
  return { savedAt, segment, offset }
}

function readList(after: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(Buffer.from(after, 'base64url').toString())
    return Array.isArray(read) ? read : []
  } catch (cause) {
    throw notACursor(after, cause)
  }
}

const notACursor = (after: string, cause?: unknown) =>
  new TypeError(
    `list: cursor "${after}" is not a cursor of a file store. Pass "nextCursor" of a page.`,
    {
      cause,
    },
  )
