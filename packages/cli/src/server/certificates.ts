import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

/** The files of a connection with TLS. */
export interface CertificateOptions {
  /** Certificates of private authorities. */
  readonly ca?: string
  /** The client certificate. */
  readonly cert?: string
  /** The private key of the client certificate. */
  readonly key?: string
}

/** The texts of the files, in PEM. */
export type Certificates = CertificateOptions

/** Protocols without TLS. PostgreSQL has one protocol for both. */
const PLAIN: Readonly<Partial<Record<string, string>>> = {
  'amqp:': 'amqps:',
  'kafka:': 'kafkas:',
  'http:': 'https:',
  'nats:': 'tls:',
  'redis:': 'rediss:',
}

/** Reads the certificates for these addresses. Returns undefined without any. */
export function certificatesOf(
  { cwd }: Io,
  { ca, cert, key }: CertificateOptions,
  addresses: readonly string[],
): Certificates | undefined {
  if (ca === undefined && cert === undefined && key === undefined) return undefined
  if ((cert === undefined) !== (key === undefined))
    throw new CommandError(EXIT.usage, 'Expected both --cert and --key, or neither.')
  for (const address of addresses) {
    const protocol = URL.parse(address)?.protocol ?? ''
    const secure = PLAIN[protocol]
    if (secure !== undefined)
      throw new CommandError(
        EXIT.usage,
        `Expected an address with ${secure}// instead of ${protocol}//, because --ca, --cert and --key are for TLS.`,
      )
    const parameter = sslParameterIn(address)
    if (parameter !== undefined)
      throw new CommandError(
        EXIT.usage,
        `Expected no "${parameter}" in the address, because it would replace --ca, --cert and --key.`,
      )
  }
  const read = (name: keyof Certificates, file: string | undefined): Certificates =>
    file === undefined ? {} : { [name]: pemIn(`--${name}`, resolve(cwd, file)) }
  return { ...read('ca', ca), ...read('cert', cert), ...read('key', key) }
}

/**
 * The driver of PostgreSQL prefers the parameters of an address, for example a parameter that turns off the check of
 * certificates.
 */
const sslParameterIn = (address: string): string | undefined =>
  [...(URL.parse(address)?.searchParams.keys() ?? [])].find((name) => name.startsWith('ssl'))

function pemIn(flag: string, file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new CommandError(
      EXIT.usage,
      `${flag}: cannot read the file "${file}" (${code}). Check the name and its permissions.`,
    )
  }
  if (text.includes('-----BEGIN')) return text
  throw new CommandError(
    EXIT.usage,
    `${flag}: the file "${file}" has no text in PEM. Check that it contains "-----BEGIN".`,
  )
}
