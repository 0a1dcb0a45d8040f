/** Writes to a pipe without a reader until it fails, and prints the error. A separate process. */
import { isRedriveError } from '@redrive/core'
import { stdout } from '../src/index.ts'
import { event, never } from './world.ts'

const sink = stdout()
const bytes = Buffer.alloc(100_000, 'x')
try {
  for (;;) await sink.send([event({ bytes, contentType: 'text/plain' })], { signal: never })
} catch (error) {
  process.stderr.write(`refused: ${isRedriveError(error) ? error.code : String(error)}\n`)
}
