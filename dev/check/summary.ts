/** Prints the numbers of the last test run, `N passed, N failed`, from vitest's JSON report. */
import { existsSync, readFileSync } from 'node:fs'

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const path = process.argv[2] ?? '.reports/tests.json'

/** Returns the report; undefined when the tests did not run, or were stopped while they wrote it. */
function readReport(): Report | undefined {
  if (!existsSync(path)) return undefined
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report
  } catch (error) {
    console.log(String(error))
    return undefined
  }
}

const report = readReport()
if (report === undefined) {
  console.log('the tests did not finish')
  console.log('0 passed, 0 failed')
  process.exit(1)
}
// A file that does not load, or whose hook fails, has no test that failed. It counts as one failure.
const broken = report.testResults.filter(
  ({ status, assertionResults }) =>
    status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
).length
const failed = report.numFailedTests + broken
console.log(`${report.numPassedTests} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
