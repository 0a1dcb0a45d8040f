import type { Input, Output } from '@redrive/api'
import { queryOptions } from '@tanstack/react-query'
import { client } from './client.ts'
import { queryClient } from './query-client.ts'

export type Token = Output<'listTokens'>['tokens'][number]
export type NewToken = Output<'createToken'>
export type TokenRequest = Input<'createToken'>['body']
export type Session = Output<'listSessions'>['sessions'][number]
export type FingerprintRule = Output<'listFingerprints'>['rules'][number]
export type FingerprintPreview = Output<'previewFingerprints'>

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: async ({ signal }) => (await client.call('listTokens', {}, { signal })).tokens,
})

/**
 * Sessions and tokens of all users. Each request is an entry of the audit log, so they are loaded only when an
 * administrator opens the page or asks for it.
 */
export const accessQuery = queryOptions({
  queryKey: ['access'],
  queryFn: async ({ signal }) => {
    const query = { everyone: true }
    const [{ sessions }, { tokens }] = await Promise.all([
      client.call('listSessions', {}, { signal }),
      client.call('listTokens', { query }, { signal }),
    ])
    return { sessions, tokens }
  },
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
})

export async function createToken(body: TokenRequest, key: string): Promise<NewToken> {
  const created = await client.call('createToken', { body }, { idempotencyKey: key })
  await queryClient.invalidateQueries({ queryKey: ['tokens'] })
  return created
}

export async function revokeToken(id: string, key: string): Promise<void> {
  await client.call('revokeToken', { params: { id } }, { idempotencyKey: key })
  await refreshAccess()
}

/** Ends sessions and revokes tokens, one after the other. */
export async function revokeAccess(
  {
    sessions,
    tokens,
  }: { readonly sessions: readonly Session[]; readonly tokens: readonly Token[] },
  key: string,
): Promise<void> {
  for (const { id } of tokens)
    await client.call('revokeToken', { params: { id } }, { idempotencyKey: `${key}-${id}` })
  for (const { id } of sessions)
    await client.call('revokeSession', { params: { id } }, { idempotencyKey: `${key}-${id}` })
  await refreshAccess()
}

async function refreshAccess(): Promise<void> {
  const keys = [['tokens'], ['access']]
  await Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
}

export const fingerprintsQuery = queryOptions({
  queryKey: ['fingerprints'],
  queryFn: async ({ signal }) => (await client.call('listFingerprints', {}, { signal })).rules,
})

export interface PreviewOptions {
  /** Rules to try. Default: those of the config. */
  readonly rules?: readonly FingerprintRule[]
  /** Default: all sources that the caller can view. */
  readonly sources?: readonly string[]
}

/** Counts what rules would move. It changes nothing, so each call may have a new key. */
export const previewFingerprints = ({
  rules,
  sources,
}: PreviewOptions = {}): Promise<FingerprintPreview> => {
  const body = {
    ...(rules === undefined ? {} : { rules: [...rules] }),
    ...(sources === undefined ? {} : { sources: [...sources] }),
  }
  return client.call('previewFingerprints', { body })
}

/** Moves dead letters to the groups of the rules. A large source needs several requests. */
export async function applyFingerprints(
  sources: readonly string[],
  reason: string,
  key: string,
): Promise<number> {
  let moved = 0
  let cursor: string | undefined
  do {
    const body = { sources: [...sources], reason, ...(cursor === undefined ? {} : { cursor }) }
    const idempotencyKey = cursor === undefined ? key : undefined
    const page = await client.call(
      'applyFingerprints',
      { body },
      idempotencyKey === undefined ? {} : { idempotencyKey },
    )
    moved += page.moved
    cursor = page.nextCursor
  } while (cursor !== undefined)
  await queryClient.invalidateQueries({ queryKey: ['groups'] })
  return moved
}

export const masksQuery = queryOptions({
  queryKey: ['masks'],
  queryFn: ({ signal }) => client.call('listMasks', {}, { signal }),
})
