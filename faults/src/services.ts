import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The root of the repository. */
export const ROOT: string = fileURLToPath(new URL('../../', import.meta.url))

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout.trim()
}

/** Starts a service and answers its addresses. */
export async function urlsOf(service: string): Promise<readonly string[]> {
  await services('up', service)
  return (await services('do', service, 'url')).split('\n')
}
