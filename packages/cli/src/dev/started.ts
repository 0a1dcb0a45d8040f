/** What was started and how it stops, in the order of the starts. */
export type Started = { readonly what: string; readonly stop: () => Promise<unknown> }[]
