// The servers of `dev/services`. They are shared: nobody here stops one.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const ROOT = new URL('../../', import.meta.url).pathname
const run = promisify(execFile)

/** Starts the server if it does not run and says where it is. */
export async function serviceUrl(name: string, scheme: string): Promise<string> {
  const told = await whereabouts(name)
  const url = told.split('\n').find((line) => line.startsWith(`${scheme}:`))
  if (url === undefined) throw new Error(`dev/services names no ${scheme} address: ${told}`)
  return url
}

/** The same for what is reached by `host:port`. */
export async function serviceHosts(name: string): Promise<readonly string[]> {
  return (await whereabouts(name)).trim().split(/[\s,]+/)
}

async function whereabouts(name: string): Promise<string> {
  await run(`${ROOT}dev/services`, ['up', name], { cwd: ROOT })
  const { stdout } = await run(`${ROOT}dev/services`, ['do', name, 'url'], { cwd: ROOT })
  return stdout
}
