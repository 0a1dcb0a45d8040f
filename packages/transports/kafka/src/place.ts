/** One partition of one topic. */
export interface Place {
  readonly topic: string
  readonly partition: number
}

export const nameOf = ({ topic, partition }: Place): string => `${topic}/${partition}`
