// An event of about 300 bytes as JSON, created for each call as a service would.

export const TYPE = 'order.paid'

export interface OrderPaid {
  readonly order: string
  readonly customer: string
  readonly amount: number
  readonly currency: string
  readonly authorisation: string
  readonly method: { readonly kind: string; readonly last4: string; readonly country: string }
  readonly items: readonly {
    readonly sku: string
    readonly count: number
    readonly price: number
  }[]
}

export const orderPaid = (number: number): OrderPaid => ({
  order: `order-${String(number).padStart(9, '0')}`,
  customer: 'customer-0f3c2b1a',
  amount: 12_497,
  currency: 'EUR',
  authorisation: '6f1d2a40-5b7e-4c11-9a3d-2e8f7b6c5d4a',
  method: { kind: 'card', last4: '4242', country: 'DE' },
  items: [
    { sku: 'tea-earl-grey-250g', count: 2, price: 1_249 },
    { sku: 'kettle-steel-1.7l', count: 1, price: 9_999 },
  ],
})
