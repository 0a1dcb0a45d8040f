import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import { RedriveError } from '@redrive/core'
import type { ServerTls } from '../config/tls.ts'
import { readPem } from '../tls.ts'
import type { Log } from './log.ts'

/** The certificate and the key of the server. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
}

/** Reads the certificate and the key, and checks that they belong together. */
export function readKeyPair(tls: ServerTls): KeyPair {
  const pair = readFiles(tls)
  requireMatch(pair)
  return pair
}

const readFiles = ({ cert, key }: ServerTls): KeyPair => ({
  cert: readPem('tls.cert', cert),
  key: readPem('tls.key', key),
})

/** A secure context accepts an empty certificate, and refuses every connection then. So it is parsed first. */
function requireMatch({ cert, key }: KeyPair): void {
  const isMatch = attempt(() => {
    createSecureContext({ cert, key })
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  })
  if (!isMatch) throw unusable('they do not belong together')
}

function attempt<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw unusable(cause instanceof Error ? cause.message : String(cause), cause)
  }
}

const unusable = (reason: string, cause?: unknown) =>
  new RedriveError(
    'POLICY_INVALID',
    `tls: cannot use the certificate and the key: ${reason}. Check that both files are PEM and belong together.`,
    { cause },
  )

/** 5 s: soon enough for a test of a renewal by hand. Events of file systems miss folders that are replaced. */
const CHECK_MS = 5_000

export interface CertificateWatch {
  stop(): void
}

export interface CertificateWatchOptions {
  readonly log: Log
  /** Interval between two checks. Default: 5 s. */
  readonly everyMs?: number
}

/**
 * Uses changed files for new connections. Open connections continue. A change is used when two checks have read the same
 * content, because a file may be half written. Files that cannot be used are reported once, and the server keeps the
 * previous certificate.
 */
export function watchCertificate(
  server: Pick<Server, 'setSecureContext'>,
  tls: ServerTls,
  first: KeyPair,
  { log, everyMs = CHECK_MS }: CertificateWatchOptions,
): CertificateWatch {
  let current = first
  let seen = first
  let reported: string | undefined
  const check = () => {
    const next = readFiles(tls)
    const isStable = isSame(next, seen)
    seen = next
    if (isSame(next, current)) reported = undefined
    else if (isStable) {
      requireMatch(next)
      server.setSecureContext(next)
      current = next
      log.info('The certificate has changed. New connections use it.')
    }
  }
  const report = (error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    if (reason !== reported) log.error(`${reason} The server keeps the previous certificate.`)
    reported = reason
  }
  const timer = setInterval(() => {
    try {
      check()
    } catch (error) {
      report(error)
    }
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

const isSame = (one: KeyPair, other: KeyPair) => one.cert === other.cert && one.key === other.key
