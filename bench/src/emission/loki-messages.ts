// Messages between the benchmark and the server.

export type Ask = { readonly kind: 'expect'; readonly count: number } | { readonly kind: 'count' }

export type Tell =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'expecting' }
  /** All expected entries have arrived. */
  | { readonly kind: 'reached' }
  | { readonly kind: 'count'; readonly count: number }
