/** The started programs and how they stop, in the order of their starts. */
export type Started = { readonly what: string; readonly stop: () => Promise<unknown> }[]
