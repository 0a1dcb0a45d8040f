import type { FastifyInstance } from 'fastify'
import { ProblemError } from '../access/problem-error.ts'
import { DEPTH_MAX } from './limits.ts'

/** Accepts only JSON bodies with a limited nesting depth. */
export function takeJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string' },
    (request, body, done) => {
      if (isDeeper(body, DEPTH_MAX)) done(tooDeep())
      else void parse(request, body, done)
    },
  )
}

const tooDeep = () =>
  new ProblemError(
    'invalid',
    `The body has more than ${DEPTH_MAX} levels of nesting. Send a flatter body.`,
  )

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b])
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d])

/** Returns whether a JSON text is nested too deeply, without parsing it. The parser rejects invalid JSON. */
function isDeeper(text: string, maxDepth: number): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isText) {
      if (code === BACKSLASH) at += 1
      else isText = code !== QUOTE
    } else if (code === QUOTE) isText = true
    else if (OPENING.has(code)) depth += 1
    else if (CLOSING.has(code)) depth -= 1
    if (depth > maxDepth) return true
  }
  return false
}
