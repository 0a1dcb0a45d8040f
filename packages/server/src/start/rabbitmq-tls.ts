import { type ChannelModel, connect } from 'amqplib'
import type { TlsFiles } from '../tls.ts'

/** 10 s: as for connections without certificates. */
const CONNECT_MS = 10_000
/** The default of the broker is 60 s. A dead connection would be detected after 120 s. */
const HEARTBEAT_S = '10'

/** Returns a function that connects with certificates. It reads their files again for each connection. */
export const connectWith =
  (files: TlsFiles, queue: string) =>
  (url: string, purpose: string): Promise<ChannelModel> => {
    const address = new URL(url)
    if (!address.searchParams.has('heartbeat')) address.searchParams.set('heartbeat', HEARTBEAT_S)
    return connect(address.href, {
      ...files,
      noDelay: true,
      keepAlive: true,
      timeout: CONNECT_MS,
      clientProperties: { connection_name: `redrive ${queue} (${purpose})` },
    })
  }
