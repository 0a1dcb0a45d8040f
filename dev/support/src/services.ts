import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The root of the repository, with a slash at its end. */
export const ROOT: string = fileURLToPath(new URL('../../../', import.meta.url))

/** Runs `dev/services` with these arguments and returns what it prints, trimmed. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout.trim()
}

/**
 * Starts a service unless it is running. Returns its addresses, or only those of a scheme such as
 * `amqp`. Rejects when there is none.
 */
export async function urlsOf(service: string, scheme?: string): Promise<readonly string[]> {
  await services('up', service)
  const all = (await services('do', service, 'url')).split(/[\s,]+/)
  const urls = scheme === undefined ? all : all.filter((url) => url.startsWith(`${scheme}:`))
  if (urls.length > 0) return urls
  throw new Error(
    `dev/services lists no "${scheme}" address for "${service}". It lists: ${all.join(', ')}`,
  )
}

/** Returns the first address of `urlsOf`. */
export async function urlOf(service: string, scheme?: string): Promise<string> {
  const [url = ''] = await urlsOf(service, scheme)
  return url
}
