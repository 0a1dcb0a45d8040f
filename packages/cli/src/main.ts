#!/usr/bin/env node
import { nodeProblem } from './node-version.ts'

// Before anything else is loaded: an old Node fails in the middle of it, with an error that does not name the reason.
const problem = nodeProblem(process.versions.node)
if (problem === undefined) await (await import('./start.ts')).start()
else {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}
