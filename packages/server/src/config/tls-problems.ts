import type { Problem } from './placeholders.ts'
import type { Config } from './schema.ts'
import type { Secret } from './secret.ts'
import type { ClientTls } from './tls.ts'

/** Returns the TLS settings that contradict the URL of their connection. */
export function tlsProblems({ database, sources }: Config): readonly Problem[] {
  return [
    ...postgresProblems(['database'], database),
    ...Object.entries(sources).flatMap(([name, { rabbitmq, postgres, postgresStore, replay }]) => [
      ...rabbitmqProblems(['sources', name, 'rabbitmq'], rabbitmq),
      ...postgresProblems(['sources', name, 'postgres'], postgres),
      ...postgresProblems(['sources', name, 'postgresStore'], postgresStore),
      ...postgresProblems(['sources', name, 'replay', 'inbox'], replay?.inbox),
    ]),
  ]
}

interface Connection<Url> {
  readonly url?: Url | undefined
  readonly tls?: ClientTls | undefined
}

/** The driver prefers the parameters of the URL, so `tls` would have no effect. */
function postgresProblems(
  path: readonly string[],
  connection: Connection<Secret> | undefined,
): readonly Problem[] {
  const { url, tls } = connection ?? {}
  if (tls === undefined) return []
  if (url === undefined) {
    return [{ path: [...path, 'tls'], text: 'expected url, too: tls is for another database' }]
  }
  const names = [...new URL(url.reveal()).searchParams.keys()].filter((one) =>
    one.startsWith('ssl'),
  )
  const text = `expected no "${names[0]}" in the URL, because it would replace tls`
  return names.length === 0 ? [] : [{ path: [...path, 'url'], text }]
}

function rabbitmqProblems(
  path: readonly string[],
  connection: Connection<Secret | readonly Secret[]> | undefined,
): readonly Problem[] {
  const { url, tls } = connection ?? {}
  if (tls === undefined || tls === false || url === undefined) return []
  const urls: readonly Secret[] = Array.isArray(url) ? (url as readonly Secret[]) : [url as Secret]
  const isPlain = urls.some((one) => !one.reveal().startsWith('amqps:'))
  return isPlain ? [{ path: [...path, 'url'], text: 'expected amqps:// with tls' }] : []
}
