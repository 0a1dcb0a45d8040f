import type { Scalar } from '@redrive/catalog'

/** `name=value` each, as they stand in an address. */
export function pairsOf(pairs: readonly string[] | undefined): Record<string, string> | undefined {
  return pairs === undefined ? undefined : Object.fromEntries(pairs.map(split))
}

/** The same with values of JSON; what is not JSON is a text. */
export function valuesOf(pairs: readonly string[] | undefined): Record<string, Scalar> | undefined {
  if (pairs === undefined) return undefined
  return Object.fromEntries(pairs.map(split).map(([name, value]) => [name, scalarOf(value)]))
}

/** At the first one: names have no `=`, values may. */
function split(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return [pair.slice(0, at), pair.slice(at + 1)]
}

function scalarOf(text: string): Scalar {
  try {
    const value: unknown = JSON.parse(text)
    return isScalar(value) ? value : text
  } catch {
    // Not JSON: people write `status=open` and not `status="open"`.
    return text
  }
}

const isScalar = (value: unknown): value is Scalar =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)
