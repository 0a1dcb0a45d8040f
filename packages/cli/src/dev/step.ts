import type { Io } from '../io.ts'
import { say } from '../print.ts'
import { dim, green } from '../text/painted.ts'
import { Page } from '../text/page.ts'
import { cut } from '../text/width.ts'

/** Shorter steps show only their end. */
const SLOW_MS = 1_000

/**
 * Runs one step of a start and prints its end with its time. A step of more than a second prints that it runs,
 * on a terminal with the seconds.
 */
export async function step<T>(io: Io, what: string, work: () => Promise<T>): Promise<T> {
  const startedAt = io.now()
  const page = new Page(io.stderr)
  const { isTTY } = io.stderr
  let shown = 0
  const timer = setInterval(() => {
    shown += 1
    const seconds = Math.round((io.now() - startedAt) / SLOW_MS)
    // A text that wraps would leave a line each second, because `\r` returns to the last one only.
    const time = ` (${seconds} s)`
    const name = cut(`… ${what}`, io.stderr.columns - 1 - time.length)
    if (isTTY) io.stderr.write(`\r${page.shown(name + time)}\u001b[K`)
    else if (shown === 1) page.line`… ${what}`
  }, SLOW_MS)
  try {
    const result = await work()
    const time = ((io.now() - startedAt) / SLOW_MS).toFixed(1)
    if (isTTY && shown > 0) io.stderr.write('\r\u001b[K')
    say(io)`${green('✓')} ${what} ${dim(`(${time} s)`)}`
    return result
  } catch (error) {
    if (isTTY && shown > 0) io.stderr.write('\n')
    throw error
  } finally {
    clearInterval(timer)
  }
}
