import { expect, onTestFinished, test, vi } from 'vitest'
import { step } from '../src/dev/step.ts'
import type { Io } from '../src/io.ts'

test('a slow step shows its time in one line of a narrow terminal', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const written: string[] = []
  const stderr = { write: (text: string) => written.push(text), isTTY: true, columns: 24 }
  const io = { stderr, now: () => Date.now() } as unknown as Io
  const done = step(
    io,
    'Download of PostgreSQL 18, 24 MB, once',
    () => new Promise((resolve) => setTimeout(resolve, 2_500)),
  )
  await vi.advanceTimersByTimeAsync(3_000)
  await done
  expect(written.slice(0, 2)).toEqual([
    '\r… Download of Po… (1 s)\u001b[K',
    '\r… Download of Po… (2 s)\u001b[K',
  ])
})
