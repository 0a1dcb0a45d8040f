import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Check, findIn } from '../src/index.ts'

export const ROOT: string = new URL('../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout
}

/** Starts a service and answers its addresses. */
export async function urlsOf(service: string): Promise<readonly string[]> {
  await services('up', service)
  return (await services('do', service, 'url')).trim().split(/[\s,]+/)
}

/** The ids of the checks that find something, each once. */
export const idsIn = <Facts>(checks: readonly Check<Facts>[], facts: Facts): readonly string[] =>
  [...new Set(findIn(checks, facts).map(({ check }) => check))].sort()
