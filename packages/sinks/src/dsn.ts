import { decoded, type Problems } from './options.ts'

export interface Dsn {
  readonly publicKey: string
  /** Set only for old projects; empty otherwise. */
  readonly secretKey: string
  readonly host: string
  readonly envelopeUrl: URL
}

/** Parses `{protocol}://{publicKey}[:{secretKey}]@{host}[:{port}][/{path}]/{projectId}`. Errors never contain the DSN. */
export function parseDsn(text: string, problems: Problems): Dsn {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    problems.expected('dsn', text, "a URL such as 'https://key@o1.ingest.sentry.io/2'", [
      'SENTRY_DSN',
    ])
  } else {
    if (url.username === '') problems.add('dsn: the public key before the @ is missing')
    if (!/\/\d+\/?$/.test(url.pathname)) {
      problems.add('dsn: the project number at the end is missing')
    }
  }
  return partsOf(url ?? new URL('http://invalid/0'))
}

function partsOf(url: URL): Dsn {
  const parts = url.pathname.split('/').filter(Boolean)
  const prefix = parts.slice(0, -1).map((part) => `/${part}`)
  return {
    publicKey: decoded(url.username),
    secretKey: decoded(url.password),
    host: url.host,
    envelopeUrl: new URL(`${url.origin}${prefix.join('')}/api/${parts.at(-1)}/envelope/`),
  }
}
