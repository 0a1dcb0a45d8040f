import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Longer than any file, so that files without an earlier run start first. */
const UNKNOWN = Number.MAX_SAFE_INTEGER

/**
 * Starts the files that took longest first, whatever their project. Vitest's own order ends with
 * long files when their project's name comes late, and they then run next to idle workers. Files
 * without an earlier run keep vitest's order.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const inOrder = await super.sort(files)
    const group = ({ project }: TestSpecification) => project.config.sequence.groupOrder
    const duration = (file: TestSpecification) =>
      this.ctx.cache.getTestSpecificationResult(file)?.duration ?? UNKNOWN
    return inOrder.sort((a, b) => group(a) - group(b) || duration(b) - duration(a))
  }
}
