import { z } from 'zod'
import { flag, secret, text } from './values.ts'

/** 1 MB: a bundle of all public authorities has a quarter of it. */
const PEM_MAX = 1_000_000

const certificates = z
  .strictObject({
    ca: text(PEM_MAX)
      .describe(
        'File with the certificates of private authorities (PEM), or their text. Default: the authorities of Node.js',
      )
      .optional(),
    cert: text(PEM_MAX)
      .describe('File with the client certificate (PEM), or its text. Default: none')
      .optional(),
    key: secret()
      .describe(
        'File with the private key of the client certificate (PEM), or its text. Default: none',
      )
      .optional(),
  })
  .refine((one) => (one.cert === undefined) === (one.key === undefined), {
    error: 'expected both cert and key, or neither',
  })

/** TLS of a connection that the server opens. */
export const clientTls = z.union([flag(), certificates], {
  error: 'expected true, false, or an object with ca, cert and key',
})

/** TLS of connections that the server accepts. */
export const serverTls = z.strictObject({
  cert: text(4_096).describe(
    'File with the certificate of the server (PEM), followed by those of intermediate authorities',
  ),
  key: text(4_096).describe('File with the private key of the certificate (PEM)'),
})

export type ClientTls = z.output<typeof clientTls>
export type ServerTls = z.output<typeof serverTls>
