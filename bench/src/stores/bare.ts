import type { FileHandle } from 'node:fs/promises'
import { BODY } from './samples.ts'

/** Measures the disk alone: no save can be faster. */
export class BareFile {
  readonly #file: FileHandle
  #waiting: (() => void)[] = []
  #isRunning = false

  constructor(file: FileHandle) {
    this.#file = file
  }

  append(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve)
      if (!this.#isRunning) this.#run().catch(reject)
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      await this.#file.write(BODY.repeat(batch.length))
      await this.#file.datasync()
      for (const resolve of batch) resolve()
    }
    this.#isRunning = false
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}
