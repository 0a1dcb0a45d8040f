// What the benchmark and the server say to each other.

export type Ask = { readonly kind: 'expect'; readonly count: number } | { readonly kind: 'count' }

export type Tell =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'expecting' }
  /** All that were expected have come. */
  | { readonly kind: 'reached' }
  | { readonly kind: 'count'; readonly count: number }
