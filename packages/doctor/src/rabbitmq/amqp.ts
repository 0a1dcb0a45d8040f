import { connect } from 'amqplib'
import { answerWithin } from '../reading.ts'

/** The version that the broker says when a client connects. */
export async function askAmqp(url: string, timeoutMs: number): Promise<string> {
  const connection = await answerWithin(timeoutMs, connect(url, { timeout: timeoutMs }))
  // A connection that breaks while it is closed has told what was asked.
  connection.on('error', () => undefined)
  const { version } = connection.connection.serverProperties
  await connection.close()
  return version
}
