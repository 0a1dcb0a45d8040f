import { readFileSync } from 'node:fs'
import { RedriveError } from '@redrive/core'
import type { ClientTls } from './config/tls.ts'

/** Certificates of a client connection. */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/**
 * Returns the certificates of a connection, or undefined without TLS. Each access of a property reads its file, so that a
 * new connection uses a renewed certificate.
 */
export function tlsFilesOf(where: string, tls: ClientTls | undefined): TlsFiles | undefined {
  if (tls === undefined || tls === false) return undefined
  if (tls === true) return {}
  const values = { ca: tls.ca, cert: tls.cert, key: tls.key?.reveal() }
  const files: TlsFiles = {}
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    const get = () => pemOf(`${where}.${name}`, value)
    // Reads it once now: a missing file must fail the start, not a connection later.
    get()
    Object.defineProperty(files, name, { get, enumerable: true, configurable: true })
  }
  return files
}

/** Returns a text in PEM, or the content of the file that it names. */
function pemOf(where: string, value: string): string {
  return value.includes('-----BEGIN') ? value : readPem(where, value)
}

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
