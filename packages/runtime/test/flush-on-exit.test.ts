import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('./exiting.ts', import.meta.url))

interface End {
  readonly stored: readonly string[]
  readonly code: number | null
  readonly signal: string | null
}

const run = (mode: string): Promise<End> =>
  new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['--conditions=@redrive/source', PROGRAM, mode],
      (_, stdout) => {
        const { exitCode: code, signalCode: signal } = child
        resolve({ stored: stdout.split('\n').filter((line) => line !== ''), code, signal })
      },
    )
  })

const CLOSED_20 = Array.from({ length: 20 }, () => 'closed')

describe('flushOnExit', () => {
  it('stores events in flight on SIGTERM, and the signal then ends the process', async () => {
    expect(await run('signal')).toEqual({ stored: CLOSED_20, code: null, signal: 'SIGTERM' })
  })

  it('leaves the end of the process to another handler of the signal', async () => {
    expect(await run('own handler')).toEqual({ stored: CLOSED_20, code: 7, signal: null })
  })
})

describe('a schedule of automatic replays', () => {
  it('does not keep the process alive', async () => {
    expect(await run('schedule')).toEqual({ stored: [], code: 0, signal: null })
  })
})
