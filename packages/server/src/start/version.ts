import { readFileSync } from 'node:fs'

/** Of this package. */
export function serverVersion(): string {
  const url = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }).version
}
