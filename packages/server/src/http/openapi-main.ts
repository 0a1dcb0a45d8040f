/**
 * Writes packages/server/openapi.json. Refuses a change that breaks what is asked today, unless API_VERSION
 * says that it does. `pnpm format` after it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { breaking, isRaised } from './breaking.ts'
import { type Json, openApi } from './openapi.ts'

const file = new URL('../../openapi.json', import.meta.url)
const after = openApi()
const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Json) : after
const problems = breaking(before, after)
if (problems.length > 0 && !isRaised(before, after)) {
  const list = problems.map((one) => `- ${one}\n`).join('')
  process.stderr.write(`This breaks who uses the API today. Raise API_VERSION, or undo:\n${list}`)
  process.exitCode = 1
} else {
  writeFileSync(file, `${JSON.stringify(after, undefined, 2)}\n`)
}
