import { z } from 'zod'

/** A refund as the shop sends it to the queue. */
export const Refund = z.object({
  refund: z.string(),
  currency: z.string(),
  cents: z.number(),
})
export type Refund = z.infer<typeof Refund>

/** The first release has no account for Swiss francs. */
export type Release = 'first' | 'second'

const ACCOUNTS: Readonly<Record<Release, readonly string[]>> = {
  first: ['EUR'],
  second: ['EUR', 'CHF'],
}

/** The transfers to customers; in a real service this is the API of a bank. */
export class Refunds {
  /** The paid refunds, in the order of their transfers. */
  readonly paid: string[] = []
  release: Release = 'first'

  pay({ refund, currency }: Refund): void {
    if (!ACCOUNTS[this.release].includes(currency)) throw new Error(`no account for ${currency}`)
    this.paid.push(refund)
  }
}
