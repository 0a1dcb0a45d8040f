import { EXIT } from './exit.ts'
import { processIo } from './process-io.ts'
import { runProgram } from './program.ts'

/** Runs the command of this process. */
export async function start(): Promise<void> {
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      // A second signal ends the process immediately. A closed terminal can send several SIGHUP.
      if (ending.signal.aborted && name !== 'SIGHUP') process.exit(EXIT.interrupted)
      ending.abort()
    })
  }
  let isOutliving = false
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isOutliving) return
    // The reader of the pipe, such as `head`, has closed it. This is not a failure.
    process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure)
  })
  // A failing stderr cannot be reported anywhere. The exit code still shows the result.
  process.stderr.on('error', () => undefined)

  const io = processIo(ending.signal, () => {
    isOutliving = true
  })
  process.exitCode = await runProgram(io, process.argv.slice(2))
}
