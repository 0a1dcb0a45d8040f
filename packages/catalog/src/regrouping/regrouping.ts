import type { FailureGroup } from '../read/failure-group.ts'
import { readMergedGroups } from '../read/groups.ts'
import type { ApplyResult } from './apply.ts'
import { type SplitRequest, type SplitResult, splitGroupBy } from './split.ts'
import {
  applyFingerprints,
  type ApplyRequest,
  type FingerprintPreview,
  previewFingerprints,
} from './fingerprints.ts'
import { checkRules, type FingerprintRule } from './rules.ts'
import { mergeGroups, type MergeRequest, type RegroupingDeps, unmergeGroup } from './merge.ts'

/** Corrects groups by hand, where the rules of signatures cannot decide. */
export interface Regrouping {
  /**
   * Merges groups of one source into the target: it then contains their dead letters and all later ones with their
   * signatures. No dead letter changes, so planned runs and selections stay valid. `unmerge` undoes it.
   */
  merge(target: string, request: MergeRequest): Promise<FailureGroup>
  /** Makes a merged group a separate group again, with all its dead letters. */
  unmerge(id: string): Promise<FailureGroup>
  /** Returns the groups that users merged into a group, directly or through another group; newest merge first. */
  merged(id: string): Promise<readonly FailureGroup[]>
  /**
   * Moves the open dead letters of a group that match the conditions into a new group, and all later ones. Ends after 10 s
   * and returns where to continue. To undo it, merge the new group into the old one.
   */
  split(id: string, request: SplitRequest): Promise<SplitResult>
  /** The fingerprint rules of the catalog, in their order. */
  readonly rules: readonly FingerprintRule[]
  /**
   * Counts the open dead letters of these sources that rules would move, with examples. Changes nothing. Ends after 5 s.
   * Default of `rules`: those of the catalog.
   */
  preview(
    sources: readonly string[],
    rules?: readonly FingerprintRule[],
  ): Promise<FingerprintPreview>
  /**
   * Moves open dead letters to the groups of the rules. New dead letters need no such call. Ends after 10 s and returns
   * where to continue.
   */
  apply(request: ApplyRequest): Promise<ApplyResult>
}

export function createRegrouping(
  deps: RegroupingDeps,
  rules: readonly FingerprintRule[],
): Regrouping {
  return {
    rules,
    async preview(sources, other = rules) {
      checkRules(other)
      return previewFingerprints(deps, other, sources)
    },
    apply: (request) => applyFingerprints(deps, rules, request),
    merge: (target, request) => mergeGroups(deps, target, request),
    unmerge: (id) => unmergeGroup(deps, id),
    split: (id, request) => splitGroupBy(deps, id, request),
    merged: (id) => readMergedGroups(deps.reader, id),
  }
}
