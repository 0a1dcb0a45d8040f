/** The index for searches by message id. */
export const FILTERS: string = String.raw`
-- For searches by the id of the message in the broker, which logs of producers and consumers contain.
create index dead_letter_message on redrive_catalog.dead_letter (message_id);
`
