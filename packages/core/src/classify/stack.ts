import { readString, readText } from './read.ts'
import { clip } from '../text.ts'

/** About fifteen frames: those of the handler and of the library it called. More would fill the broker headers. */
export const STACK_MAX = 2048

const FRAME = /\n\s{0,8}(?:at |File ")/

/**
 * Returns the frames of an error without the head, which repeats the message. Redacting the message is
 * then enough, and a long message cannot displace the frames. To keep the text, detach it.
 */
export function framesOf(error: unknown): string | undefined {
  const stack = readString(error, 'stack')
  if (stack === undefined) return undefined
  const message = readText(error, 'message')
  const found = stack.indexOf(message)
  const firstFrame = stack.search(FRAME)
  // A short message may also be part of a frame.
  const head = firstFrame !== -1 && found > firstFrame ? -1 : found
  const firstLine = stack.indexOf('\n', head === -1 ? 0 : head + message.length)
  return firstLine === -1 ? undefined : clip(stack.slice(firstLine + 1), STACK_MAX)
}
