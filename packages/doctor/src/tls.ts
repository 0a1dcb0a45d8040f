/** Certificates of a connection, as text in PEM. */
export interface TlsOptions {
  /** Certificates of private authorities. Default: the authorities of Node.js. */
  readonly ca?: string
  /** The client certificate. Default: none. */
  readonly cert?: string
  /** The private key of the client certificate. Default: none. */
  readonly key?: string
}

const UNKNOWN_AUTHORITY =
  'The certificate of the server is not signed by a known authority. Name the file of its authority: --ca FILE, or "tls.ca" in the config'
const NEEDS_CLIENT =
  'The server did not accept the client certificate, or requires one. Name its files: --cert FILE --key FILE, or "tls.cert" and "tls.key" in the config'

/** What to do about a certificate that was rejected, by the error code of Node.js. */
const HINTS: Readonly<Partial<Record<string, string>>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: 'The certificate of the server has expired. Renew it',
  CERT_NOT_YET_VALID: 'The certificate of the server is not valid yet. Compare the clocks',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'The certificate of the server is for another host. Use the host name that the certificate contains',
}

/** A part of the codes of OpenSSL for a server that rejects the client. */
const REJECTED_CLIENT =
  /^ERR_SSL_.*ALERT_(.*CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|DECRYPT_ERROR|ACCESS_DENIED)/

/** Returns what to do about a rejected certificate; undefined for other errors. */
export function certificateHint(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  if (typeof code !== 'string') return undefined
  return HINTS[code] ?? (REJECTED_CLIENT.test(code) ? NEEDS_CLIENT : undefined)
}
