import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { formatSeconds, recordTiming, type Timing } from './times.ts'
import { ROOT } from './workspace.ts'

export interface Step {
  readonly name: string
  readonly command: string
  /** What to do when it fails, where the output does not contain it. */
  readonly remedy?: string
  /** Shows the output while it runs, also when the step passes. */
  readonly loud?: true
}

/** Runs the steps until one fails; returns the durations and the step that failed. */
export function runSteps(steps: readonly Step[]): {
  readonly times: readonly Timing[]
  readonly failed: Step | undefined
} {
  const times: Timing[] = []
  for (const step of steps) {
    const { ok, seconds } = run(step)
    times.push({ name: step.name, seconds })
    if (!ok) return { times, failed: step }
  }
  return { times, failed: undefined }
}

function run(step: Step): { readonly ok: boolean; readonly seconds: number } {
  const startedAt = performance.now()
  const { status, stdout, stderr } = spawnSync(step.command, {
    cwd: ROOT,
    shell: true,
    stdio: step.loud ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: {
      ...process.env,
      PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env['PATH']}`,
    },
  })
  const ok = status === 0
  if (!ok) process.stdout.write(`${stdout ?? ''}${stderr ?? ''}`)
  const seconds = (performance.now() - startedAt) / 1_000
  recordTiming({ name: step.name, seconds })
  console.log(
    `${ok ? 'ok    ' : 'FAILED'} ${step.name.padEnd(9)} ${formatSeconds(seconds).padStart(13)}`,
  )
  return { ok, seconds }
}
