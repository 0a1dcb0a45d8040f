/**
 * Writes packages/server/openapi.json. Fails for a breaking change unless API_VERSION was raised. Run
 * `pnpm format` afterwards.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { breaking, isRaised } from './breaking-changes.ts'
import { type Json, openApi } from './openapi.ts'

const file = new URL('../../openapi.json', import.meta.url)
const after = openApi()
const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Json) : after
const problems = breaking(before, after)
if (problems.length > 0 && !isRaised(before, after)) {
  const list = problems.map((one) => `- ${one}\n`).join('')
  process.stderr.write(`Breaking changes of the API. Raise API_VERSION, or undo them:\n${list}`)
  process.exitCode = 1
} else {
  writeFileSync(file, `${JSON.stringify(after, undefined, 2)}\n`)
}
