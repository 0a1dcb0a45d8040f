import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { onTestFinished } from 'vitest'

export interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly body: string
}

/** A local HTTP service that keeps what it receives. */
export async function httpReceiver() {
  const received: ReceivedRequest[] = []
  const state = { status: 200 }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      received.push({ headers: request.headers, path: request.url ?? '', body })
      // It repeats what it got, as some services do: errors must not contain our secrets.
      response.writeHead(state.status).end(`${request.url} ${body}`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, state }
}

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly user: string | undefined
  readonly isSecure: boolean
  readonly text: string
}

/** A local SMTP server with a password, and with STARTTLS if it has a certificate. */
export async function smtpReceiver({ tls }: { readonly tls?: { cert: string; key: string } } = {}) {
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    ...tls,
    disabledCommands: tls === undefined ? ['STARTTLS'] : [],
    allowInsecureAuth: true,
    onAuth({ username, password }, _, done) {
      if (password === 'let me in') done(null, { user: username })
      else done(new Error(`wrong password`))
    },
    onData(stream, { envelope, user, secure }, done) {
      const from = envelope.mailFrom === false ? '' : (envelope.mailFrom?.address ?? '')
      const to = envelope.rcptTo.map(({ address }) => address)
      let text = ''
      stream.on('data', (chunk) => (text += String(chunk)))
      stream.on('end', () => {
        received.push({ from, to, user: user as string | undefined, isSecure: secure, text })
        done()
      })
    },
  })
  server.on('error', () => undefined)
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(async () => {
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { port: (listener.address() as AddressInfo).port, received }
}
