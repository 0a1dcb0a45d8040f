import { connect } from 'amqplib'
import { answerWithin } from '../reading.ts'

/** Returns the version that the broker reports when a client connects. */
export async function askAmqp(url: string, timeoutMs: number): Promise<string> {
  const connection = await answerWithin(timeoutMs, connect(url, { timeout: timeoutMs }))
  // An error while closing is ignored: the version is already known.
  connection.on('error', () => undefined)
  const { version } = connection.connection.serverProperties
  await connection.close()
  return version
}
