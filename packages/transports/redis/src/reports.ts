import { RedriveError } from '@redrive/core'

/** Events that a transport reports. */
export type TransportEvent =
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }
  | { readonly type: 'messages_expired'; readonly where: string; readonly count: number }
  | { readonly type: 'topic_recreated'; readonly where: string }

export const wrongType = (stream: string, cause: unknown): RedriveError =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The key "${stream}", or a key of Redrive that belongs to it, exists and is not a stream. Use another stream, or rename the key.`,
    { cause },
  )
