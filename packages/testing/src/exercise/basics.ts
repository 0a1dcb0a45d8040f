import { type RunnableTest, skipNow } from './runner.ts'
import type { Scenario } from './scenario.ts'

/** The end of a scenario that did not fail: it was played, or skipped for a reason. */
export interface PlayedScenario {
  readonly skipped?: string
}

/**
 * Stops a suite early. Without open, send, receive and settle every scenario fails in the same way, most
 * of them at their deadline. Only the first failure is useful.
 */
export class Basics {
  #failed: string | undefined

  /** Returns the test of a scenario, which is skipped once a basic one has failed. */
  guard(
    { name, isBasic }: Pick<Scenario, 'name' | 'isBasic'>,
    play: () => Promise<PlayedScenario>,
  ): RunnableTest {
    // No named parameter: jest would treat it as a callback and wait for its call.
    return async (...[context]: readonly unknown[]) => {
      const isRepeated = this.#failed === name
      if (this.#failed !== undefined && !isRepeated) {
        return skipNow(context, `'${this.#failed}' failed`)
      }
      if (isBasic === true) this.#failed = name
      const { skipped } = await play()
      if (isBasic === true) this.#failed = undefined
      if (skipped !== undefined) skipNow(context, skipped)
    }
  }
}
