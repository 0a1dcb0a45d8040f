import { createHash } from 'node:crypto'

/**
 * 1 KB of JSON that does not compress: a table that stores it smaller would be measured otherwise. The
 * messages are made of it by SQL: made in this process, their garbage would be collected in the sample.
 */
export const BODY: string = JSON.stringify({ text: hexDigits(1_013) })

function hexDigits(length: number): string {
  const digest = (part: number) => createHash('sha256').update(`${part}`).digest('hex')
  return Array.from({ length: Math.ceil(length / 64) }, (_, part) => digest(part))
    .join('')
    .slice(0, length)
}
