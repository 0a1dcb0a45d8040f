import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const ROOT = new URL('../../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout
}

/** `redis://host:port` of a service. */
export async function urlOf(service: 'redis' | 'redis-durable'): Promise<string> {
  await services('up', service)
  return (await services('do', service, 'url')).trim()
}
