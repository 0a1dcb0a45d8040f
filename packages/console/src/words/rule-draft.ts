/** The fields of a fingerprint rule in the address. A separate file, because the first page loads it. */
export const DRAFT_FIELDS = [
  'name',
  'source',
  'class',
  'text',
  'code',
  'errorType',
  'type',
  'handler',
  'group',
] as const
export type Draft = { readonly [K in (typeof DRAFT_FIELDS)[number]]?: string }
