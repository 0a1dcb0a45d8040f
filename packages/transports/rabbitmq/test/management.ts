import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import type { Rig } from './rig.ts'

/** The address of the management API of a service, and its authorization header. */
export interface Management {
  readonly api: string
  readonly authorization: string
}

export async function managementOf(service: string): Promise<Management> {
  const { username, password, origin } = new URL(await urlOf(service, 'http'))
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

export async function put(
  { api, authorization }: Management,
  path: string,
  body: Readonly<Record<string, unknown>>,
): Promise<void> {
  const headers = { authorization, 'content-type': 'application/json' }
  const answer = await fetch(`${api}${path}`, {
    method: 'PUT',
    headers,
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`PUT ${path}: ${answer.status} ${await answer.text()}`)
}

/** A user of the broker. */
export interface User {
  readonly address: string
  readonly mayWrite: (write: string) => Promise<void>
}

/** Creates a user whose permission to write can be changed. */
export async function makeUser(
  rig: Rig,
  { configure = '.*', read = '.*', vhost = '/' } = {},
): Promise<User> {
  const management = await managementOf('rabbitmq')
  const name = `user-${randomUUID()}`
  await put(management, `/users/${name}`, { password: 'secret', tags: '' })
  rig.atEnd(() => remove(management, `/users/${name}`))
  const mayWrite = (write: string) =>
    put(management, `/permissions/${encodeURIComponent(vhost)}/${name}`, {
      configure,
      write,
      read,
    })
  await mayWrite('.*')
  return { address: rig.url.replace('guest:guest', `${name}:secret`), mayWrite }
}
