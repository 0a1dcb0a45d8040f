/** Finds the views of original messages of one person, for the limit of `masking.unmaskedPerHour`. */
export const AUDIT_UNMASKED: string = String.raw`
create index audit_unmasked on redrive_server.audit (person, sequence)
  where outcome = 'viewed' and operation in ('getPayload', 'getSetAsidePayload');
`
