/** One partition of one topic. */
export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export const nameOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`
