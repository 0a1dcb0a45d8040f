import { createHash } from 'node:crypto'

/** 1 KB of JSON that does not compress: a table that stores it smaller would be measured otherwise. */
export const BODY: { readonly text: string } = { text: hexDigits(1_013) }
export const BODY_JSON: string = JSON.stringify(BODY)

function hexDigits(length: number): string {
  const digest = (part: number) => createHash('sha256').update(`${part}`).digest('hex')
  return Array.from({ length: Math.ceil(length / 64) }, (_, part) => digest(part))
    .join('')
    .slice(0, length)
}

/** Sizes of the statements that put `count` messages in. */
export function* batches(count: number, size = 1_000): Generator<number> {
  for (let left = count; left > 0; left -= size) yield Math.min(left, size)
}
