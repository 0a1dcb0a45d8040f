#!/usr/bin/env node
import { EXIT } from './exit.ts'
import { processIo } from './process-io.ts'
import { runProgram } from './program.ts'

const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // Asked twice: whoever asks does not want to wait for an orderly end.
    if (ending.signal.aborted) process.exit(EXIT.interrupted)
    ending.abort()
  })
}
let isOutliving = false
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (isOutliving) return
  // The reader of a pipe has had enough, as `head` has: that is no failure.
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure)
})
// Nobody is left to be told that nobody reads the messages; the exit code says how it ended.
process.stderr.on('error', () => undefined)

const io = processIo(ending.signal, () => {
  isOutliving = true
})
process.exitCode = await runProgram(io, process.argv.slice(2))
