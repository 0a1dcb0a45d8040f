import type { Violation } from '../../evidence/evidence.ts'
import { type Result, type Scenario, type Session, textOf } from '../../harness/scenario.ts'
import { type Target, target } from './target.ts'

/** Ends an attack that has succeeded once, when more attempts prove nothing. */
class AttackWorked extends Error {}

/** Records the attempts and which of them succeeded. */
export class Tries {
  count = 0
  readonly worked: string[] = []
  readonly #stopAtFirst: boolean

  constructor(stopAtFirst: boolean) {
    this.#stopAtFirst = stopAtFirst
  }

  /** Records one attempt; `hasWorked` must never be true. */
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
  readonly world: Session
}

/** Creates a fault scenario that fails when the attack succeeds. */
export const attack = (
  name: string,
  story: string,
  play: (scene: Scene) => Promise<void>,
): Scenario => ({
  name: `attack-${name}`,
  story,
  async play(world) {
    const tries = new Tries(world.stopAtFirst)
    const played = target().then((found) => play({ target: found, tries, world }))
    const broken = await played.then(
      () => [],
      (error: unknown): readonly Violation[] =>
        error instanceof AttackWorked ? [] : [{ rule: 'scenario', text: textOf(error) }],
    )
    return resultOf(tries, broken)
  },
})

function resultOf({ count, worked }: Tries, broken: readonly Violation[]): Result {
  return {
    events: count,
    figures: [`${count} attempts, ${worked.length} worked`],
    broken: [...broken, ...worked.map((text) => ({ rule: 'attack succeeded', text }) as const)],
  }
}
