import { z } from 'zod'

/** An order as the shop publishes it. */
export const Order = z.object({
  order: z.string(),
  country: z.string(),
  cents: z.number(),
})
export type Order = z.infer<typeof Order>

/** The first release has no tax rate for France. */
export type Release = 'first' | 'second'

const TAX_PERCENT: Readonly<Record<Release, Readonly<Record<string, number>>>> = {
  first: { DE: 19 },
  second: { DE: 19, FR: 20 },
}

/** The invoices; in a real service this is a table. */
export class Invoices {
  /** Orders with an invoice, in the order of their invoices. */
  readonly orders: string[] = []
  release: Release = 'first'

  write({ order, country }: Order): void {
    const tax = TAX_PERCENT[this.release][country]
    if (tax === undefined) throw new Error(`no tax rate for ${country}`)
    this.orders.push(order)
  }
}
