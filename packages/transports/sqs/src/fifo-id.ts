import { createHash } from 'node:crypto'

/** SQS accepts up to 128 letters, digits and punctuation marks. */
const VALID = /^[\x21-\x7e]{1,128}$/

/** Returns an id for a message of a FIFO queue. Text that SQS does not accept is hashed. */
export const fifoId = (text: string): string =>
  VALID.test(text) ? text : createHash('sha256').update(text).digest('hex')
