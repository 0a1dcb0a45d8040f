/** Prints the numbers of the last test run, `N passed, N failed`, from vitest's JSON report. */
import { existsSync, readFileSync } from 'node:fs'

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly { status: string; assertionResults: readonly unknown[] }[]
}

const path = process.argv[2] ?? '.reports/tests.json'
if (!existsSync(path)) {
  console.log('the tests did not run')
  console.log('0 passed, 0 failed')
  process.exit(1)
}
const report = JSON.parse(readFileSync(path, 'utf8')) as Report
// A file that does not even load has no tests to fail: count it as one failure.
const broken = report.testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.length === 0,
).length
const failed = report.numFailedTests + broken
console.log(`${report.numPassedTests} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
