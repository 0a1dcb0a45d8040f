/** A group is the whole cluster's, so each topic has one of its own. */
export const groupOf = (topic: string): string => `of-${topic}`

/** As many as the published figures speak of. */
export const PARTITIONS = 6
