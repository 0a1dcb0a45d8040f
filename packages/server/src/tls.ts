import { readFileSync } from 'node:fs'
import { RedriveError } from '@redrive/core'
import type { ClientTls } from './config/tls.ts'

/** Certificates of a client connection. */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/** Receives the text of a warning. */
export type Warn = (text: string) => void

/**
 * Returns the certificates of a connection, or undefined without TLS. Each access of a property reads its file, so that a
 * new connection uses a renewed certificate. While a file cannot be read, its last text is used, and `warn` is called once.
 */
export function tlsFilesOf(
  where: string,
  tls: ClientTls | undefined,
  warn: Warn = () => undefined,
): TlsFiles | undefined {
  if (tls === undefined || tls === false) return undefined
  if (tls === true) return {}
  const values = { ca: tls.ca, cert: tls.cert, key: tls.key?.reveal() }
  const files: TlsFiles = {}
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    const get = isPem(value) ? () => value : createReader(`${where}.${name}`, value, warn)
    Object.defineProperty(files, name, { get, enumerable: true, configurable: true })
  }
  return files
}

const isPem = (value: string) => value.includes('-----BEGIN')

/**
 * Returns a function that reads a file. It never throws: a driver calls it while it connects, and an error there would end
 * the process.
 */
function createReader(where: string, file: string, warn: Warn): () => string {
  // Reads it once now: a missing file must fail the start, not a connection later.
  let last = requirePem(where, readPem(where, file))
  let isReported = false
  return () => {
    try {
      last = requirePem(where, readPem(where, file))
      isReported = false
    } catch (error) {
      if (!isReported) warn(`${textOf(error)} The previous content is used until then.`)
      isReported = true
    }
    return last
  }
}

/** A file may be empty while it is replaced. An empty list of authorities would mean the authorities of Node.js. */
function requirePem(where: string, text: string): string {
  if (isPem(text)) return text
  throw new RedriveError(
    'POLICY_INVALID',
    `${where}: the file has no text in PEM. Check that it contains "-----BEGIN".`,
  )
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Reads a file with certificates or a key. The error contains the setting, because the value may be a key. */
export function readPem(where: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new RedriveError(
      'POLICY_INVALID',
      `${where}: cannot read the file (${code}). Check that it exists and that the user of the server can read it.`,
    )
  }
}
