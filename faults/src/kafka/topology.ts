/** Returns the group of a topic. Groups are global in a cluster, so each topic has a separate one. */
export const groupOf = (topic: string): string => `of-${topic}`

/** The number of partitions used for the published figures. */
export const PARTITIONS = 6
