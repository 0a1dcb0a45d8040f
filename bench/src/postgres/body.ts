import { createHash } from 'node:crypto'

/**
 * 1 KB of JSON that does not compress, so that all tables store the same size. SQL creates the
 * messages. Created in this process, their garbage would be collected during the sample.
 */
export const BODY: string = JSON.stringify({ text: hexDigits(1_013) })

function hexDigits(length: number): string {
  const digest = (part: number) => createHash('sha256').update(`${part}`).digest('hex')
  return Array.from({ length: Math.ceil(length / 64) }, (_, part) => digest(part))
    .join('')
    .slice(0, length)
}
