import type { TransportGroup } from './ports/transport.ts'

/** A handler that is alive although its signal was aborted. */
export interface AliveRun {
  readonly messageId: string
  /** Whether its grace period has passed. */
  isHung: boolean
}

/**
 * The runs of a message whose signal was aborted. `ending`: all that are alive are in their grace period. `hung`: one of
 * them is past it.
 */
export type MessageState = 'ended' | 'ending' | 'hung'

/** A consumer of the group. */
export interface GroupMember {
  /** Returns whether a run of the message, whose signal is not aborted, is alive. */
  isRunning(messageId: string): boolean
  /** Called after a run of another member hung, or ended while a member waited for it. */
  onChange(messageId: string): void
}

/**
 * The runs of all consumers of this process that share their messages. Runs are added when their signal is aborted, so that
 * a message that passes costs nothing. They stay until their handler ends, also after their consumer has stopped.
 */
export class RunGroup {
  /** All runs of a message: copies of it may run at the same time, and each of them may hang. */
  readonly #runs = new Map<string, Set<AliveRun>>()
  readonly #members = new Set<GroupMember>()
  /** Messages that wait for a run whose signal is not aborted: its consumer may not know yet that it lost the message. */
  readonly #awaited = new Set<string>()
  readonly #onUnused: () => void

  constructor(onUnused: () => void = () => undefined) {
    this.#onUnused = onUnused
  }

  /** True while no delivery can have an earlier run: each message may start without a check. */
  get isQuiet(): boolean {
    return this.#runs.size === 0 && this.#members.size <= 1
  }

  /** Returns the state of the earlier runs of a message that a member wants to run. */
  stateFor(messageId: string, by: GroupMember): MessageState {
    const runs = this.#runs.get(messageId)
    if (runs === undefined) return this.#isRunningElsewhere(messageId, by) ? 'ending' : 'ended'
    for (const { isHung } of runs) if (isHung) return 'hung'
    return 'ending'
  }

  #isRunningElsewhere(messageId: string, by: GroupMember): boolean {
    for (const member of this.#members) {
      if (member === by || !member.isRunning(messageId)) continue
      this.#awaited.add(messageId)
      return true
    }
    return false
  }

  add(run: AliveRun): void {
    const { messageId } = run
    this.#runs.set(messageId, (this.#runs.get(messageId) ?? new Set()).add(run))
  }

  hang(run: AliveRun, by: GroupMember): void {
    run.isHung = true
    this.#notifyOthers(run.messageId, by)
  }

  /** Notes that a run ended whose signal was not aborted. */
  finish(messageId: string, by: GroupMember): void {
    if (this.#awaited.size > 0 && this.#awaited.delete(messageId)) {
      this.#notifyOthers(messageId, by)
    }
  }

  end(run: AliveRun, by: GroupMember): void {
    const { messageId } = run
    const runs = this.#runs.get(messageId)
    runs?.delete(run)
    if (runs?.size === 0) this.#runs.delete(messageId)
    this.#awaited.delete(messageId)
    this.#notifyOthers(messageId, by)
    this.#checkUse()
  }

  /** Adds a consumer until the returned function is called. */
  join(member: GroupMember): () => void {
    this.#members.add(member)
    return () => {
      this.#members.delete(member)
      this.#checkUse()
    }
  }

  /** Later in this turn: the consumer of the run finishes its message first. */
  #notifyOthers(messageId: string, by: GroupMember): void {
    for (const member of this.#members) {
      if (member !== by) queueMicrotask(() => member.onChange(messageId))
    }
  }

  #checkUse(): void {
    if (this.#members.size === 0 && this.#runs.size === 0) this.#onUnused()
  }
}

interface RunGroups {
  readonly named: Map<string, RunGroup>
  readonly owned: WeakMap<object, Map<string, RunGroup>>
}

/** Global: two installed copies of this package in one process share the groups. */
const KEY: unique symbol = Symbol.for('redrive.run-groups')
const shared = globalThis as { [KEY]?: RunGroups }

/** Returns the runs of the consumers that share the messages of a transport; creates the group on first use. */
export function runGroupOf({ group }: { readonly group?: TransportGroup }): RunGroup {
  if (group === undefined) return new RunGroup()
  shared[KEY] ??= { named: new Map(), owned: new WeakMap() }
  const { named, owned } = shared[KEY]
  if (group.owner === undefined) return groupIn(named, group.name)
  const groups = owned.get(group.owner) ?? new Map<string, RunGroup>()
  owned.set(group.owner, groups)
  return groupIn(groups, group.name)
}

function groupIn(groups: Map<string, RunGroup>, name: string): RunGroup {
  const known = groups.get(name)
  if (known !== undefined) return known
  const made = new RunGroup(() => void groups.delete(name))
  groups.set(name, made)
  return made
}
