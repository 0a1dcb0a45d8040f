import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type LookupFunction, type Socket } from 'node:net'
import { AddressGuard, notAllowed, Problems } from '@redrive/sinks/internal'
import { createTransport } from 'nodemailer'
import { type AlertChannel, type ChannelOptions, checkAllow } from '../channel.ts'
import { type AlertNotice, cut, headlineOf, shownFacts, titleOf } from '../notice.ts'

export interface EmailOptions extends ChannelOptions {
  /**
   * SMTP server: `smtps://user:password@host` uses TLS from the start (port 465). `smtp://user:password@host` requires
   * STARTTLS (port 587).
   */
  readonly url: string
  /** Address of the sender. */
  readonly from: string
  /** Addresses of the recipients. */
  readonly to: readonly string[]
  /** Allows `smtp:` without TLS. Default `false`: the password and the alerts would be readable in transit. */
  readonly allowPlain?: boolean
  /** Certificate of the authority in PEM. Default: the authorities of Node.js. */
  readonly ca?: string
}

/** 50: more alerts in one e-mail are not read. */
const BATCH = 50
/** Mail servers fold longer subjects. */
const SUBJECT_MAX = 200
/** 60 s: servers delay the first message of a sender, and each step of the protocol has its own time. */
const SEND_MS = 60_000
/** 10 s for each step of the protocol. */
const STEP_MS = 10_000

/** Creates a channel that sends e-mails. */
export function email(options: EmailOptions): AlertChannel {
  const { to, from, allow = [], lookup, allowPlain = false, ca } = options
  const url = checkedUrl(options)
  const isSecure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port || (isSecure ? 465 : 587))
  const guard = new AddressGuard(allow, lookup)
  const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  const transportOver = (connection: Socket) =>
    createTransport({
      host,
      port,
      secure: isSecure,
      requireTLS: !isSecure && !allowPlain,
      ...(user === '' ? {} : { auth: { user, pass } }),
      ...(ca === undefined ? {} : { tls: { ca } }),
      greetingTimeout: STEP_MS,
      socketTimeout: STEP_MS,
      // The library resolves names without the check of private addresses.
      connection,
    })
  return {
    name: options.name ?? `email ${url.host}`,
    // Without the password, which changes in a rotation.
    address: `${url.protocol}//${url.username}@${url.host} ${[...to].sort().join()}`,
    batch: BATCH,
    timeoutMs: SEND_MS,
    preview(notices) {
      const { subject, text } = mailOf(notices)
      return `From: ${from}\nTo: ${to.join(', ')}\nSubject: ${subject}\n\n${text}`
    },
    async send(notices, { signal }) {
      if (!guard.allowsHost(host)) throw notAllowed(host)
      const connection = await open({ host, port, lookup: guard.lookup, signal })
      try {
        await transportOver(connection).sendMail({ from, to: [...to], ...mailOf(notices) })
      } finally {
        connection.destroy()
      }
    },
    async close() {},
  }
}

function checkedUrl({ url: text, from, to, allow }: EmailOptions): URL {
  const problems = new Problems()
  const url = problems.url('url', text, ['SMTP_URL'], ['smtps:', 'smtp:'])
  for (const [field, address] of [
    ['from', from] as const,
    ...to.map((one) => ['to', one] as const),
  ]) {
    if (!isEmailAddress(address))
      problems.add(`${field}: expected an e-mail address, got "${address}"`)
  }
  if (to.length === 0) problems.add('to: expected at least one address')
  checkAllow(problems, allow)
  problems.refuse('email()')
  return url
}

/** An address, also with a name: `Redrive <redrive@example.com>`. Line breaks would add headers. */
export const isEmailAddress = (text: string): boolean =>
  /^([^<>\r\n]*<)?[^\s<>@,]+@[^\s<>@,]+>?$/.test(text)

interface Destination {
  readonly host: string
  readonly port: number
  readonly lookup: LookupFunction
  readonly signal: AbortSignal
}

async function open({ host, port, lookup, signal }: Destination): Promise<Socket> {
  const socket = connect({ host, port, lookup, signal })
  // The library reports errors, but not before it has the connection. Without a listener they end the process.
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

function mailOf(notices: readonly AlertNotice[]) {
  const ids = notices.map(({ id, status }) => `${id} ${status}`).sort()
  const id = createHash('sha256').update(ids.join()).digest('hex').slice(0, 32)
  return {
    // Programs for e-mail show a repeated delivery once.
    messageId: `<${id}@redrive>`,
    subject: cut(`[Redrive] ${headlineOf(notices)}`, SUBJECT_MAX),
    text: notices.map(textOf).join('\n'),
  }
}

function textOf(notice: AlertNotice): string {
  const { link, runbook } = notice
  const lines = shownFacts(notice).map(([label, value]) => `  ${label}: ${value}`)
  return [
    titleOf(notice),
    ...lines,
    ...(link === undefined ? [] : [`  Open in Redrive: ${link}`]),
    ...(runbook === undefined ? [] : [`  Runbook: ${runbook}`]),
    '',
  ].join('\n')
}
