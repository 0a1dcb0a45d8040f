import { readFileSync } from 'node:fs'

/** Returns the version of this package. */
export function serverVersion(): string {
  const url = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }).version
}
