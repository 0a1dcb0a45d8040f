import type { Entry } from '../evidence/history.ts'

/** Known facts of one process. */
interface Life {
  inFlight: number
  /** Its member ids, by group and topic. */
  readonly members: Map<string, string>
  /** Times of handler ends since the last accepted commit was sent. */
  endedAt: number[]
}

/**
 * Returns the number of duplicates that the faults explain. When a process dies or its group
 * continues without it, its in-flight and uncommitted messages are delivered again. A broken
 * connection costs nothing, because records already read stay with the process. A copy without a
 * known confirmation is made again.
 */
export function boundOf(entries: readonly Entry[]): number {
  const lives = new Map<string, Life>()
  const lifeOf = (name: string): Life => {
    const life = lives.get(name) ?? { inFlight: 0, members: new Map(), endedAt: [] }
    lives.set(name, life)
    return life
  }
  const atRisk = ({ inFlight, endedAt }: Life) => inFlight + endedAt.length
  let bound = 0
  for (const entry of entries) {
    switch (entry.what) {
      case 'spawned':
        lifeOf(entry.process).inFlight = entry.inFlight
        break
      case 'effect':
      case 'failed':
        lifeOf(entry.by).endedAt.push(entry.at)
        break
      case 'commit':
        if (entry.isAccepted) committed(lifeOf(entry.by), entry.sentAt)
        break
      case 'assigned': {
        const life = lifeOf(entry.by)
        const { group, topic = '', member } = entry
        const key = `${group} ${topic}`
        const before = life.members.get(key) ?? member
        if (before !== member) bound += atRisk(life)
        life.members.set(key, member)
        break
      }
      case 'exited':
        if (entry.isCrash) bound += atRisk(lifeOf(entry.process))
        break
      case 'event':
        if (entry.type === 'unknown' || entry.type === 'lost') bound += 1
        break
      default:
    }
  }
  return bound
}

function committed(life: Life, sentAt: number): void {
  // In the same millisecond it may have been too late.
  life.endedAt = life.endedAt.filter((at) => at >= sentAt)
}
