import type { Broken, Drill, DrillResult, DrillWorld } from '../../drill.ts'
import { type Target, target } from './target.ts'

/** Ends an attack that has worked once, where more of it proves nothing. */
class AttackWorked extends Error {}

/** What was tried, and what of it worked. */
export class Tries {
  count = 0
  readonly worked: string[] = []
  readonly #stopAtFirst: boolean

  constructor(stopAtFirst: boolean) {
    this.#stopAtFirst = stopAtFirst
  }

  /** One attempt; `hasWorked` is what must never be. */
  note(what: string, hasWorked: boolean): void {
    this.count += 1
    if (!hasWorked) return
    this.worked.push(what)
    if (this.#stopAtFirst) throw new AttackWorked(what)
  }
}

export interface Scene {
  readonly target: Target
  readonly tries: Tries
  readonly world: DrillWorld
}

/** A drill that fails when the attack succeeds. */
export const attack = (
  name: string,
  story: string,
  play: (scene: Scene) => Promise<void>,
): Drill => ({
  name: `attack-${name}`,
  story,
  async play(world) {
    const tries = new Tries(world.stopAtFirst)
    const played = target().then((found) => play({ target: found, tries, world }))
    const broken = await played.then(
      () => [],
      (error: unknown): readonly Broken[] =>
        error instanceof AttackWorked ? [] : [{ rule: 'scenario', text: textOf(error) }],
    )
    return resultOf(tries, broken)
  },
})

function resultOf({ count, worked }: Tries, broken: readonly Broken[]): DrillResult {
  return {
    events: count,
    told: [`${count} attempts, ${worked.length} worked`],
    broken: [...broken, ...worked.map((text) => ({ rule: 'attack succeeded', text }) as const)],
  }
}

const textOf = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)
