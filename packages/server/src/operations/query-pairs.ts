import type { Scalar } from '@redrive/catalog'

/** Parses `name=value` pairs of a query string. */
export function pairsOf(pairs: readonly string[] | undefined): Record<string, string> | undefined {
  return pairs === undefined ? undefined : Object.fromEntries(pairs.map(split))
}

/** Parses `name=value` pairs with JSON values. A value that is not JSON is a text. */
export function valuesOf(pairs: readonly string[] | undefined): Record<string, Scalar> | undefined {
  if (pairs === undefined) return undefined
  return Object.fromEntries(pairs.map(split).map(([name, value]) => [name, scalarOf(value)]))
}

/** Splits at the first `=`, because only values may contain it. */
function split(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return [pair.slice(0, at), pair.slice(at + 1)]
}

function scalarOf(text: string): Scalar {
  try {
    const value: unknown = JSON.parse(text)
    return isScalar(value) ? value : text
  } catch {
    // Not JSON: users write `status=open` instead of `status="open"`.
    return text
  }
}

const isScalar = (value: unknown): value is Scalar =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)
