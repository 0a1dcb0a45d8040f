import type { Entry } from '../history.ts'

/** What is known of one process. */
interface Life {
  inFlight: number
  /** Who it is, in each of its groups. */
  readonly members: Map<string, string>
  /** When handlers ended since the last commit was sent that the group has accepted. */
  endedAt: number[]
}

/**
 * How many duplicates the faults explain. When a process dies, or its group goes on without it, what it
 * had in hand and what it finished since its last commit is handed out again. A connection that breaks
 * costs nothing: what was read stays ours. A copy whose proof is unknown is made again.
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
        const before = life.members.get(entry.group) ?? entry.member
        if (before !== entry.member) bound += atRisk(life)
        life.members.set(entry.group, entry.member)
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
