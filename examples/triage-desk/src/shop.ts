/** An order as the shop sends it. */
export interface Order {
  readonly id: number
  readonly country: string
  readonly cents: number
  /** The currency; one of the partners omits it. */
  readonly currency?: string
}

/** The first release has no tax rate for Switzerland. Both require a currency. */
export type Release = 'first' | 'second'

const COUNTRIES: Readonly<Record<Release, readonly string[]>> = {
  first: ['DE', 'FR'],
  second: ['DE', 'FR', 'CH'],
}

/** Returns the booking, or throws the reason why it is not possible. */
export function booking({ id, country, cents, currency }: Order, release: Release): string {
  if (!COUNTRIES[release].includes(country)) throw new Error(`no tax rate for country ${country}`)
  if (currency === undefined) throw new TypeError(`order ${id} has no currency`)
  return `${cents} ${currency}`
}

/** Returns orders. Every fourth is from Switzerland, and every tenth has no currency; some are both. */
export function orders(count: number): readonly Order[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    country: id % 4 === 3 ? 'CH' : 'DE',
    cents: 1_000 + id,
    ...(id % 10 === 1 ? {} : { currency: 'EUR' }),
  }))
}
