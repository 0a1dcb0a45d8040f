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
// The reader of a pipe has had enough, as `head` has: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure)
})

process.exitCode = await runProgram(processIo(ending.signal), process.argv.slice(2))
