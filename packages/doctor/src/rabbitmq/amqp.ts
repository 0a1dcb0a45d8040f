import { connect } from 'amqplib'
import { answerWithin } from '../reading.ts'
import type { TlsOptions } from '../tls.ts'

/** Returns the version that the broker reports when a client connects. */
export async function askAmqp(url: string, timeoutMs: number, tls: TlsOptions): Promise<string> {
  const connection = await answerWithin(timeoutMs, connect(url, { ...tls, timeout: timeoutMs }))
  // An error while closing is ignored: the version is already known.
  connection.on('error', () => undefined)
  const { version } = connection.connection.serverProperties
  await connection.close()
  return version
}
