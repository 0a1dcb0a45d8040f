import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const ROOT = new URL('../../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Runs `dev/services`, which starts what is not running yet. */
export async function services(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(`${ROOT}dev/services`, args, { cwd: ROOT })
  return stdout
}

/** The AMQP addresses of a service. */
export async function amqpUrls(service: string): Promise<readonly string[]> {
  await services('up', service)
  const urls = (await services('do', service, 'url')).trim().split('\n')
  return urls.filter((url) => url.startsWith('amqp:'))
}

/** Where the management API of a service answers, and what it wants to hear first. */
export interface Management {
  readonly api: string
  readonly authorization: string
}

export async function managementOf(service: string): Promise<Management> {
  const urls = (await services('do', service, 'url')).trim().split('\n')
  const { username, password, origin } = new URL(urls.find((url) => url.startsWith('http:')) ?? '')
  const secret = Buffer.from(`${username}:${password}`).toString('base64')
  return { api: `${origin}/api`, authorization: `Basic ${secret}` }
}

export async function ask<T>({ api, authorization }: Management, path: string): Promise<T> {
  const answer = await fetch(`${api}${path}`, { headers: { authorization } })
  return (await answer.json()) as T
}

export async function remove({ api, authorization }: Management, path: string): Promise<void> {
  await fetch(`${api}${path}`, { method: 'DELETE', headers: { authorization } })
}
