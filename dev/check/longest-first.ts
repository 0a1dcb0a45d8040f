import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that took more than half a minute, because they wait for a server. A clean clone has no times of an
 * earlier run, and one of these files at the end would leave the other workers without work.
 */
const LONG =
  /(\/browser\/.*|\/(contract|restart|recovery|hanging|consume|topics|kafkajs|serve-start)[\w-]*)\.test\.ts$/

/** Longer than any file, so that files without an earlier run start first. */
const UNKNOWN_MS = 3_600_000

/** Projects whose tests need only the processor. They fill the workers while the last tests wait for servers. */
const FILLERS: readonly string[] = ['pure', 'pure-isolated']

export interface File {
  readonly path: string
  readonly project: string
  /** Duration of an earlier run, if there was one. */
  readonly durationMs: number | undefined
}

/** Compares two files: the earlier start comes first. */
export function compareFiles(a: File, b: File): number {
  const [one, other] = [rankOf(a), rankOf(b)]
  return one.filler - other.filler || other.durationMs - one.durationMs
}

function rankOf({ path, project, durationMs }: File) {
  const unknownMs = LONG.test(path) ? 2 * UNKNOWN_MS : UNKNOWN_MS
  return { filler: Number(FILLERS.includes(project)), durationMs: durationMs ?? unknownMs }
}

/**
 * Starts the files that took longest first, whatever their project. Vitest's own order ends with
 * long files when their project's name comes late, and they then run next to idle workers. Files
 * that compare as equal keep vitest's order.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const inOrder = await super.sort(files)
    const fileOf = (file: TestSpecification): File => ({
      path: file.moduleId,
      project: file.project.name,
      durationMs: this.ctx.cache.getTestSpecificationResult(file)?.duration,
    })
    return inOrder.sort((a, b) => compareFiles(fileOf(a), fileOf(b)))
  }
}
