import { parentPort, workerData } from 'node:worker_threads'
import { run } from './run.ts'
import { scenarioOf } from './scenario.ts'
import type { BrokenSeed, WorkerReport, WorkerSeeds } from './sweep.ts'

/** Seeds between two reports: often enough to stop soon, seldom enough to cost nothing. */
const STRETCH = 10

const { from, until, stride } = workerData as WorkerSeeds
let done = 0
let broken: BrokenSeed[] = []

function report(): void {
  const message: WorkerReport = { done, broken }
  parentPort?.postMessage(message)
  done = 0
  broken = []
}

for (let seed = from; seed < until; seed += stride) {
  const { violations } = await run(scenarioOf(seed))
  done += 1
  if (violations.length > 0) broken.push({ seed, violations })
  if (done === STRETCH || violations.length > 0) report()
}
report()
