import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Pool } from 'pg'

/** A connection that ends with its database says so, which nobody needs to hear. */
export function quietly(pool: Pool): Pool {
  const ignore = () => undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

const ROOT = new URL('../../../', import.meta.url).pathname
const run = promisify(execFile)

/** Where a service answers; starts it when it is not running yet. */
export async function urlOf(service: string): Promise<string> {
  return (await urlsOf(service))[0] as string
}

/** All of its addresses. */
export async function urlsOf(service: string): Promise<readonly string[]> {
  await servicesUp(service)
  return (await servicesDo(service, 'url')).trim().split(/[\s,]+/)
}

export async function servicesUp(service: string): Promise<void> {
  await run(`${ROOT}dev/services`, ['up', service], { cwd: ROOT })
}

/** One more function of a service, such as `ctl` of the broker. */
export async function servicesDo(...args: readonly string[]): Promise<string> {
  return (await run(`${ROOT}dev/services`, ['do', ...args], { cwd: ROOT })).stdout
}

/** 20 s for what takes milliseconds on a quiet machine. */
const DEADLINE_MS = 20_000

/** Looks again until it holds; says what was missing when it never does. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + DEADLINE_MS
  while (!(await isTrue())) {
    if (performance.now() > endsAt) throw new Error(`Expected within ${DEADLINE_MS} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
